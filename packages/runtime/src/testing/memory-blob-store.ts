import { RuntimeFault, sha256Hex } from "@holdfast/protocol";
import type { BlobStore } from "../ports/index.ts";
import type { BrokerState } from "./broker-state.ts";
import type { NodeLink } from "./node-link.ts";

/** BlobStore of one node over the memory broker. */
export class MemoryBlobStore implements BlobStore {
  readonly #state: BrokerState;
  readonly #link: NodeLink;

  constructor(state: BrokerState, link: NodeLink) {
    this.#state = state;
    this.#link = link;
  }

  async put(sha256: string, bytes: Uint8Array): Promise<void> {
    const copy = new Uint8Array(bytes);
    if (sha256Hex(copy) !== sha256) {
      throw new RuntimeFault("HF-3007", `Blob ${sha256}: the bytes have another SHA-256. Name it by its bytes.`);
    }
    const answer = await this.#link.request({
      operation: "blobPut",
      about: sha256,
      apply: () => this.#state.blobs.set(sha256, copy),
    });
    if (answer.kind === "answered") return;
    throw new RuntimeFault("HF-4008", `Blob ${sha256}: expected an acknowledgement, got ${answer.kind}. Put it again.`);
  }

  async get(sha256: string): Promise<Uint8Array | undefined> {
    const stored = await this.#link.read(`blob ${sha256}`, () => this.#state.blobs.get(sha256));
    return stored === undefined || sha256Hex(stored) !== sha256 ? undefined : new Uint8Array(stored);
  }
}
