import { describe, expect, test } from "vitest";
import { createCodec } from "./codec.ts";
import { writeFrame } from "./frame.ts";
import { caught } from "./testing/caught.ts";
import { sampleHeader, sampleRecord } from "./testing/sample-record.ts";
import { testRefs } from "./testing/test-ref.ts";
import { upcast } from "./upcast.ts";

const set =
  (fields: object) =>
  (old: unknown): unknown => ({ ...(typeof old === "object" ? old : {}), ...fields });
const add = (name: string): ((old: unknown) => unknown) => set({ [name]: true });

describe("upcasters", () => {
  test("run one after the other, from the stored format to the known one", () => {
    expect(upcast({ a: 1 }, 0, 2, { 0: add("one"), 1: add("two") })).toStrictEqual({ a: 1, one: true, two: true });
    expect(upcast({ a: 1 }, 1, 2, { 0: add("one"), 1: add("two") })).toStrictEqual({ a: 1, two: true });
    const same = {};
    expect(upcast(same, 2, 2, {})).toBe(same);
  });

  test("HF-2002: a missing step is named", () => {
    const fault = caught(() => upcast({}, 0, 2, { 0: add("one") }));
    expect([fault.code, fault.facts]).toStrictEqual(["HF-2002", { format: 1, known: 2 }]);
  });

  test("HF-2002: a step that fails keeps what it threw as the cause", () => {
    const cause = new TypeError("no such field");
    const fault = caught(() =>
      upcast({}, 0, 1, {
        0: () => {
          throw cause;
        },
      }),
    );
    expect([fault.code, fault.cause]).toStrictEqual(["HF-2002", cause]);
  });

  test("bring a record and its header of an older format up when they are read", () => {
    const { rev: recordRev, format: _, ...record } = sampleRecord();
    const { rev: headerRev, ...header } = sampleHeader();
    const codec = createCodec({
      ref: testRefs,
      upcasters: {
        header: { 0: set({ rev: headerRev }) },
        record: { 0: set({ format: 1, rev: recordRev }) },
      },
    });
    const older = oldFrame(codec.encodeValue(header), codec.encodeValue(record));
    expect(codec.decodeRecord(older)).toStrictEqual({ header: sampleHeader(), record: sampleRecord() });
    expect(codec.decodeHeader(older)).toStrictEqual(sampleHeader());
    expect(caught(() => createCodec({ ref: testRefs }).decodeRecord(older)).code).toBe("HF-2002");
  });
});

/** A frame of the synthetic format 0. */
function oldFrame(header: Uint8Array, payload: Uint8Array): Uint8Array {
  const bytes = writeFrame(header, payload);
  bytes[2] = 0;
  return bytes;
}
