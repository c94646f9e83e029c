import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** The test file that has to notice. */
  readonly killedBy: string;
}

const mutant = (killedBy: string, file: string, name: string, from: string, to: string): Mutant => ({
  killedBy,
  file,
  name,
  from,
  to,
});

/** Ways to break the interpreter, each of which one test file must notice. */
const MUTANTS: readonly Mutant[] = [
  mutant("timers", "step.ts", "a fired timer stays", "record: { ...record, timers },", "record,"),
  mutant("timers", "timers.ts", "cancel keeps the timer", "this.#timers = others;", ""),
  mutant("timers", "finish-step.ts", "timers outlive the actor", 'if (ending !== "none") timers.cancelAll();', ""),
  mutant(
    "timers",
    "step.ts",
    "any generation fires",
    "entry === undefined || entry.gen !== gen",
    "entry === undefined",
  ),
  mutant(
    "children",
    "step.ts",
    "a settled child settles again",
    'child?.key === childKey && child.status === "active"',
    "child?.key === childKey",
  ),
  mutant(
    "children",
    "step.ts",
    "any incarnation settles",
    'child?.key === childKey && child.status === "active"',
    'child?.status === "active"',
  ),
  mutant(
    "children",
    "step.ts",
    "a settled child stays active",
    "[childId]: { ...entry, status }",
    "[childId]: { ...entry }",
  ),
  mutant(
    "children",
    "step-scope.ts",
    "grandchildren are taken for children",
    "src: name, logic: childStub",
    "src: name",
  ),
  mutant(
    "children",
    "step-scope.ts",
    "all incarnations have one key",
    "source, childId, this.rev)",
    "source, childId, 0)",
  ),
  mutant("children", "child-plan.ts", "a replaced child runs on", "if (former !== undefined) kill(former);", ""),
  mutant(
    "children",
    "effect-writer.ts",
    "events reach children that never start",
    "plan.skipped.has(to)) return;",
    "plan.skipped.has(to)) {}",
  ),
  mutant(
    "children",
    "apply-event.ts",
    "anybody reports a child's state",
    "if (event.type !== snapshotType(childId)) return undefined;",
    "",
  ),
  mutant(
    "children",
    "finish-step.ts",
    "a synchronised child is silent",
    'if (status === "active" && parent.sync',
    "if (false",
  ),
  mutant(
    "outbox",
    "finish-step.ts",
    "the outbox is overwritten",
    "[...carried, ...writer.effects]",
    "[...writer.effects]",
  ),
  mutant(
    "outbox",
    "finish-step.ts",
    "a waiting action sees a later context",
    "const kept: Effect = { ...effect, context };",
    "const kept: Effect = { ...effect };",
  ),
  mutant(
    "replay/replay",
    "apply-event.ts",
    "the journal does not say who sent",
    "return { ...by, sender: from };",
    "return by;",
  ),
  mutant("replay/replay", "apply-event.ts", "nor what was passed over", "passedOver: reason", ""),
  mutant("replay/replay", "step.ts", "nor whose child it is", "{ parent: message.parent }", "{}"),
  mutant(
    "replay/replay",
    "finish-step.ts",
    "a waiting entry names a later machine",
    '"machine" in effect ? effect : { ...effect, machine }',
    '"machine" in effect ? effect : effect',
  ),
  mutant("links", "links.ts", "duplicates are applied", "if (n <= mark) return", "if (n < 0) return"),
  mutant("links", "links.ts", "gaps are applied", "if (n === mark + 1)", "if (n > mark)"),
  mutant("links", "links.ts", "former children are forgotten", "next[key] = mark;", ""),
  mutant("links", "links.ts", "links without limit", "openLinks(record.marks) >= limit", "limit < 0"),
  mutant("links", "finish-step.ts", "links stay open", "if (isTerminal(status)) writer.closeLinks();", ""),
  mutant(
    "messages",
    "apply-event.ts",
    "outside duplicates are applied",
    "if (isRemembered(record.messageIds, digest))",
    "if (false)",
  ),
  mutant(
    "messages",
    "apply-event.ts",
    "events of other incarnations are applied",
    'message.toGenesis !== record.genesis) return refusedBy("other-incarnation")',
    'message.toGenesis === "") return refusedBy("other-incarnation")',
  ),
  mutant(
    "messages",
    "step.ts",
    "results of other incarnations are applied",
    "if (toGenesis !== record.genesis)",
    "if (toGenesis === childKey)",
  ),
  mutant(
    "messages",
    "apply-event.ts",
    "outside may send internal events",
    'if (isReserved(event.type)) return refusedBy("reserved-event");',
    "",
  ),
  mutant(
    "messages",
    "step.ts",
    "terminal records go on",
    'if (isTerminal(record.status)) return dropped("terminal");',
    "",
  ),
  mutant("endings", "run-machine.ts", "a failed macrostep has effects", "scope.discard();\n    next =", "next ="),
  mutant(
    "endings",
    "run-machine.ts",
    "a failed start has effects",
    'next.status === "error") scope.discard();',
    'next.status === "error") {}',
  ),
  mutant(
    "endings",
    "finish-step.ts",
    "a failure is not told",
    'if (status === "error") return writer.settled',
    'if (status === "active") return writer.settled',
  ),
  mutant("endings", "child-plan.ts", "nobody waits for children", 'policy === "await" && ending === "final"', "false"),
  mutant(
    "endings",
    "child-plan.ts",
    "detached children are stopped",
    'if (policy !== "detach") kill(candidate);',
    "kill(candidate);",
  ),
  mutant("actor-address", "step-scope.ts", "the running step leaks into the context", "this.self.close();", ""),
  mutant(
    "actor-address",
    "step-scope.ts",
    "XState's actors stay in the context",
    "becomeAddress(ref, key, id);",
    "void [ref, key, id];",
  ),
  mutant(
    "resolve-action",
    "effect-writer.ts",
    "an action's own context is lost",
    "...(context === this.#options.context ? {} : { context }),",
    "",
  ),
  mutant(
    "differential",
    "finish-step.ts",
    "history is not stored",
    "historyValue === previous?.historyValue ? stored.historyValue : idsOf(historyValue)",
    "stored.historyValue",
  ),
  mutant(
    "reconcile",
    "reconcile.ts",
    "missing timers are not armed",
    "if (Object.hasOwn(record.timers, timer)) continue;",
    "continue;",
  ),
  mutant("work", "work.ts", "an unsent outbox is no work", "if (record.outbox.length > 0) return true;", ""),
];

// Slow: one run of another test file per mutant. `npm run mutants` in this package.
test.runIf(process.env["HOLDFAST_FULL"] === "1")(
  `${MUTANTS.length} mutants of the interpreter are killed, each by the test file named for it`,
  { timeout: 600_000 },
  () => {
    const root = mkdtempSync(join(tmpdir(), "holdfast-mutants-"));
    try {
      symlinkSync(join(import.meta.dirname, "../../../node_modules"), join(root, "node_modules"));
      writeFileSync(join(root, "package.json"), '{"type":"module"}');
      MUTANTS.forEach((each, index) => write(join(root, folderOf(index)), each));
      MUTANTS.forEach(({ killedBy }) => copyInto(join(root, CONTROL), killedBy));
      const failed = failingFolders(root);
      expect(failed.has(CONTROL), "the unbroken copy passes").toBe(false);
      const survivors = MUTANTS.filter((_, index) => !failed.has(folderOf(index))).map(({ name }) => name);
      expect(survivors).toEqual([]);
    } finally {
      rmSync(root, { recursive: true });
    }
  },
);

test("every mutant changes something that is there", () => {
  const isThere = ({ file, from }: Mutant): boolean =>
    patternOf(from).test(readFileSync(join(import.meta.dirname, file), "utf8"));
  expect(MUTANTS.filter((each) => !isThere(each)).map(({ name }) => name)).toEqual([]);
});

const CONTROL = "control";
const folderOf = (index: number): string => `mutant-${index}`;

function write(folder: string, { file, from, to, killedBy, name }: Mutant): void {
  copyInto(folder, killedBy);
  const path = join(folder, file);
  const original = readFileSync(path, "utf8");
  const mutated = original.replace(patternOf(from), to);
  if (mutated === original) throw new Error(`mutant "${name}" changes nothing in ${file}`);
  writeFileSync(path, mutated);
}

function copyInto(folder: string, testFile: string): void {
  mkdirSync(folder, { recursive: true });
  const isWanted = (path: string): boolean => !path.endsWith(".test.ts") || path.endsWith(`/${testFile}.test.ts`);
  cpSync(import.meta.dirname, folder, { recursive: true, filter: isWanted });
}

/** The formatter may break lines anywhere. */
function patternOf(code: string): RegExp {
  const words = code.split(/\s+/).map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(words.join(String.raw`\s+`));
}

function failingFolders(root: string): ReadonlySet<string> {
  const vitest = join(import.meta.dirname, "../../../node_modules/vitest/vitest.mjs");
  const report = join(root, "report.json");
  const args = [
    "run",
    "--root",
    root,
    "--reporter",
    "json",
    "--outputFile",
    report,
    "-t",
    "^((?!a new process for every macrostep).)*$",
  ];
  const { NODE_OPTIONS: _options, VITEST: _vitest, ...env } = process.env;
  spawnSync(process.execPath, [vitest, ...args], { cwd: root, env: { ...env, HOLDFAST_FULL: "0" }, encoding: "utf8" });
  const { testResults }: { testResults: { name: string; status: string; assertionResults: { status: string }[] }[] } =
    JSON.parse(readFileSync(report, "utf8"));
  // A file that could not even be loaded proves nothing about its tests.
  const failed = testResults.filter(({ assertionResults }) =>
    assertionResults.some(({ status }) => status === "failed"),
  );
  return new Set(failed.map(({ name }) => /mutant-\d+|control/.exec(name)?.[0] ?? ""));
}
