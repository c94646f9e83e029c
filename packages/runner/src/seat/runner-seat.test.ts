import { rm, writeFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ACTIVATE, PREPARE, readingAs, seatFixture, TOKEN, type SeatFixture } from "../testing/seat-fixture.ts";
import { sameSecret } from "./activation-token.ts";

let fixture: SeatFixture;
beforeEach(async () => {
  fixture = await seatFixture();
});
afterEach(() => fixture.remove());

const refusal = (reason: string): unknown => [expect.objectContaining({ op: "refused", reason })];

describe("the way of a slot over the wire", () => {
  test("prepare starts the engine and numbers nothing; activate binds it once, to the conversation, and envelope 1 is idle", async () => {
    expect(await fixture.ask(PREPARE)).toMatchObject([{ op: "prepared", contract: { engine: "sim" } }]);
    expect(fixture.journal.lastSeq).toBe(0);
    expect(await fixture.ask(ACTIVATE)).toMatchObject([{ op: "activated", conversation: "c1" }]);
    expect(fixture.asked).toEqual([
      ["start", "s1"],
      ["activate", "c1", undefined],
    ]);
    expect([fixture.seat.slot, fixture.journal.lastSeq, fixture.journal.conversation]).toEqual(["active", 1, "c1"]);
  });

  test("R2: of two prepares at once one is served; a second prepare or activate disturbs nobody", async () => {
    const answers = await Promise.all([fixture.ask(PREPARE), fixture.ask({ ...PREPARE, slotId: "s2" })]);
    expect(answers.flat().map(({ op }) => op)).toEqual(["prepared", "refused"]);
    await fixture.ask(ACTIVATE);
    expect(await fixture.ask(ACTIVATE)).toEqual(refusal("slot-not-prepared"));
    expect(await fixture.ask(PREPARE)).toEqual(refusal("slot-taken"));
    expect(fixture.asked).toHaveLength(2);
    expect(fixture.journal.lastSeq).toBe(1);
  });

  test("a half-done activation destroys the slot", async () => {
    await fixture.remove();
    fixture = await seatFixture({ activationFails: true });
    await fixture.ask(PREPARE);
    expect(await fixture.ask(ACTIVATE)).toEqual(refusal("fault"));
    expect(fixture.seat.slot).toBe("destroyed");
    expect(await fixture.ask(PREPARE)).toEqual(refusal("slot-destroyed"));
  });
});

describe("R1: the token", () => {
  test.each([
    ["wrong", TOKEN, "other"],
    ["a part of the right one", TOKEN, TOKEN.slice(0, -1)],
    ["empty in the file", " \n", "x"],
    ["not there yet", undefined, TOKEN],
  ])("%s: refused at once, and no engine is started", async (_title, inFile, token) => {
    if (inFile === undefined) await rm(fixture.tokenFile);
    else await writeFile(fixture.tokenFile, inFile);
    expect(await fixture.ask({ ...PREPARE, token })).toEqual(refusal("token"));
    expect([fixture.asked, fixture.seat.slot]).toEqual([[], "empty"]);
  });

  test("is read at each prepare, and the one that was admitted has to come again", async () => {
    await rm(fixture.tokenFile);
    await fixture.ask(PREPARE);
    await writeFile(fixture.tokenFile, "later");
    expect(await fixture.ask({ ...PREPARE, token: "later" })).toMatchObject([{ op: "prepared" }]);
    await writeFile(fixture.tokenFile, "changed");
    expect(await fixture.ask({ ...ACTIVATE, token: "changed" })).toEqual(refusal("token"));
    expect(await fixture.ask({ ...ACTIVATE, token: "later" })).toMatchObject([{ op: "activated" }]);
  });

  test("without it nothing tells whether a conversation runs here, or which", async () => {
    await fixture.ask(PREPARE);
    await fixture.ask(ACTIVATE);
    const wrong = { ...readingAs(1), token: "other", cursor: { seq: 0 } };
    const answers = [await fixture.ask(wrong), await fixture.ask({ ...wrong, conversation: "c2" })];
    expect(answers[0]).toEqual(answers[1]);
    expect(JSON.stringify(answers)).not.toMatch(/c1|c2/);
  });

  test("secrets of any lengths are compared, and two empty ones are not the same", () => {
    expect([sameSecret("a", "a"), sameSecret("a", "ab"), sameSecret("", "a"), sameSecret("", "")]).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

test.each([
  ["another first frame", { op: "persisted", attachment: 1, seq: 1 }],
  ["an opening without a conversation", { ...ACTIVATE, conversation: "" }],
  ["no object", []],
])("%s is answered with HF-1001, and nothing happens", async (_title, frame) => {
  expect(await fixture.ask(frame)).toMatchObject([{ op: "refused", code: "HF-1001" }]);
  expect([fixture.asked, fixture.seat.slot]).toEqual([[], "empty"]);
});
