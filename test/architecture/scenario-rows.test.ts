import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CONVERSATION_ROWS } from "../scenarios/openhands-conversations.ts";
import { DAMAGE_ROWS } from "../scenarios/openhands-damage.ts";
import { FAILURE_ROWS } from "../scenarios/openhands-failures.ts";
import { OWNERSHIP_ROWS } from "../scenarios/openhands-ownership.ts";
import { RECOVERY_ROWS } from "../scenarios/openhands-recovery.ts";
import { TASK_ROWS } from "../scenarios/openhands-tasks.ts";
import { WAIT_ROWS } from "../scenarios/openhands-waits.ts";
import { OUROBOROS_GROUPS } from "../scenarios/ouroboros.ts";
import { RowTurns } from "../scenarios/row-turns.ts";
import { codeWords, linksOf, readDocument, rowsUnder } from "./markdown.ts";
import { readRowTable, whyNot, type Row, type RowOutcome } from "../scenarios/row-run.ts";

const OPENHANDS = [CONVERSATION_ROWS, WAIT_ROWS, TASK_ROWS, RECOVERY_ROWS, FAILURE_ROWS, DAMAGE_ROWS, OWNERSHIP_ROWS];
const tables: readonly (readonly [string, readonly Readonly<Record<string, unknown>>[]])[] = [
  ["openhands", OPENHANDS],
  ["ouroboros", OUROBOROS_GROUPS.map(({ tests }) => tests)],
];

test.each(tables)("%s: every test of the table has a row, and only one; what is left out is no row", (name, groups) => {
  const { rows, leftOut } = readRowTable(join(import.meta.dirname, `../scenarios/${name}.rows.json`));
  const ids = rows.map(({ id }) => id);
  const tests = groups.flatMap((each) => Object.keys(each));
  expect(tests.filter((id) => !ids.includes(id))).toEqual([]);
  expect(tests).toHaveLength(new Set(tests).size);
  expect(Object.keys(leftOut).filter((id) => ids.includes(id))).toEqual([]);
});

test("docs/test-matrix.md says of each promise of recovery which rows and tests show it, and they exist", () => {
  const root = join(import.meta.dirname, "../..");
  const promises = rowsUnder(readDocument(root, "docs/test-matrix.md"), "After the death of a node", "Rows", "Tests");
  expect(promises.length).toBeGreaterThan(0);
  const { rows } = readRowTable(join(import.meta.dirname, "../scenarios/openhands.rows.json"));
  const known = new Set(rows.map(({ id }) => id));
  for (const [promise = "", shown = "", tests = ""] of promises) {
    const named = codeWords(shown);
    const titles = linksOf({ path: "docs/test-matrix.md", text: tests });
    expect(named.length + titles.length, promise).toBeGreaterThan(0);
    expect(named.filter((id) => !known.has(id))).toEqual([]);
    for (const { label, target } of titles)
      expect(readDocument(root, join("docs", target)).text).toContain(`"${label}"`);
  }
});

describe("a row holds only when", () => {
  const row: Row = { id: "r", part: "p", claim: "c", acrossKill: true };
  const step = (rev: number, node: string) => ({
    key: "d-0.conversation.c1",
    genesis: "g:1",
    rev,
    event: { type: "e" },
    status: "active",
    node,
    atMs: rev,
  });
  const stored = { journals: new Map([["d-0.conversation.c1^g:1", [step(1, "a"), step(2, "a"), step(3, "b")]]]) };
  const nodes = { killed: "a" };
  const ran = (...revs: readonly number[]): RowOutcome => ({
    kind: "ran",
    evidence: ["d-0.conversation.c1", ...revs],
    sawDeath: true,
  });

  test("its evidence is stored, by the node that died and by the next one", () => {
    expect(whyNot(row, ran(1, 3), stored, nodes)).toBeUndefined();
    expect(whyNot({ ...row, acrossKill: false }, ran(1), stored, nodes)).toBeUndefined();
  });

  test.each<readonly [string, RowOutcome | undefined, string]>([
    ["it has no test", { kind: "untested" }, "no test"],
    ["nothing is known of it", undefined, "no test"],
    ["its test failed", { kind: "failed", why: "because" }, "because"],
    ["it names a revision that is not there", ran(1, 4), "not stored"],
    [
      "it names another actor",
      { ...ran(), kind: "ran", evidence: ["d-0.conversation.c2", 1], sawDeath: true },
      "not stored",
    ],
    ["it names no revision", ran(), "not stored"],
    ["all of it was before the death", ran(1, 2), "not shown"],
    ["all of it was after the death", ran(3), "not shown"],
    [
      "its test did not wait for the death",
      { ...ran(1, 3), kind: "ran", evidence: ["d-0.conversation.c1", 1, 3], sawDeath: false },
      "not shown",
    ],
  ])("not when %s", (_what, outcome, why) => {
    expect(whyNot(row, outcome, stored, nodes)).toContain(why);
  });
});

describe("turns", () => {
  /** Two tests and what happens to them, in order. */
  const play = async (first: readonly string[], second: readonly string[], isNeeded = false) => {
    const seen: string[] = [];
    const turns = new RowTurns(2);
    const act = (name: string) => async (): Promise<void> => {
      seen.push(name);
      if (name === "death" && second.includes("fails")) throw new Error("no node");
    };
    const running = [first, second].map(async (wanted, test) => {
      const waiter = turns.waiter(test);
      try {
        for (const turn of ["eve", "absence", "death"] as const)
          if (wanted.includes(turn)) {
            await waiter.until(turn);
            seen.push(`${test} ${turn}`);
          }
      } catch {
        seen.push(`${test} failed`);
      } finally {
        waiter.leave();
      }
    });
    await turns.run({ absence: { act: act("absence"), isNeeded }, death: { act: act("death") } });
    await Promise.all(running);
    return seen;
  };

  test("T1: one begins when every test waits for it or for a later one, or has ended", async () => {
    expect(await play(["eve", "death"], ["absence"])).toEqual(["0 eve", "absence", "1 absence", "death", "0 death"]);
  });

  test("T2: what nobody waits for does not happen, unless a later one needs it", async () => {
    expect(await play(["death"], [])).toEqual(["death", "0 death"]);
    expect(await play(["death"], [], true)).toEqual(["absence", "death", "0 death"]);
    expect(await play(["eve"], [], true)).toEqual(["0 eve"]);
  });

  test("whoever waits for one that failed is told", async () => {
    expect(await play(["death"], ["eve", "fails"])).toEqual(["1 eve", "death", "0 failed"]);
  });
});
