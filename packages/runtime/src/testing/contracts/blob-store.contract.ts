import { sha256Hex } from "@holdfast/protocol";
import { describe, expect, test } from "vitest";
import { bytesOf, type MakeContractSetup } from "./contract-setup.ts";
import { contractSuite } from "./contract-suite.ts";

/** What every BlobStore must do. */
export function blobStoreContract(make: MakeContractSetup): void {
  describe("BlobStore", () => {
    const suite = contractSuite(make);
    const fresh = (): Uint8Array => bytesOf(suite.unique("blob"));
    const get = async (name: string): Promise<Uint8Array | undefined> => {
      const bytes = await suite.setup.b.blobs.get(name);
      return bytes === undefined ? undefined : new Uint8Array(bytes);
    };
    const put = async (bytes: Uint8Array): Promise<string> => {
      const name = sha256Hex(bytes);
      await suite.setup.a.blobs.put(name, bytes);
      return name;
    };

    test("what one node put the other gets", async () => {
      const bytes = fresh();
      expect(await get(await put(bytes))).toEqual(bytes);
    });

    test("a blob that was never put is nothing", async () => {
      expect(await suite.setup.a.blobs.get(sha256Hex(fresh()))).toBeUndefined();
    });

    test("putting a blob again, also from two nodes at once, changes nothing", async () => {
      const bytes = fresh();
      const name = await put(bytes);
      await Promise.all([suite.setup.a.blobs.put(name, bytes), suite.setup.b.blobs.put(name, bytes)]);
      expect(await get(name)).toEqual(bytes);
    });

    test("a blob of several megabytes comes back unchanged", async () => {
      const bytes = Uint8Array.from({ length: 3 * 1024 * 1024 + 7 }, (_, n) => (n * 31 + (n >> 8)) & 0xff);
      const got = await get(await put(bytes));
      expect(got?.length).toBe(bytes.length);
      expect(sha256Hex(got ?? new Uint8Array())).toBe(sha256Hex(bytes));
    });

    test("an empty blob comes back empty", async () => {
      expect(await get(await put(new Uint8Array()))).toEqual(new Uint8Array());
    });

    test("bytes under a name that is not theirs are never given out", async () => {
      const name = sha256Hex(fresh());
      await suite.setup.a.blobs.put(name, bytesOf("something else")).catch(() => undefined);
      expect(await get(name)).toBeUndefined();
    });

    test("bytes under a wrong name do not replace the right ones", async () => {
      const bytes = fresh();
      const name = await put(bytes);
      await suite.setup.a.blobs.put(name, bytesOf("something else")).catch(() => undefined);
      expect(await get(name)).toEqual(bytes);
    });

    test("damaged bytes are nothing, until the blob is put again", async ({ skip }) => {
      const damageBlob = suite.setup.faults?.damageBlob ?? skip("the setup cannot damage a blob");
      const bytes = fresh();
      const name = await put(bytes);
      await damageBlob(name);
      expect(await get(name)).toBeUndefined();
      await put(bytes);
      expect(await get(name)).toEqual(bytes);
    });
  });
}
