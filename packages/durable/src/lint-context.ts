import type { AnyStateMachine } from "xstate";
import type { LintFinding } from "./lint-finding.ts";

/** Values in a static initial context that no record can hold. A context factory cannot be looked into. */
export function lintContext(machine: AnyStateMachine): readonly LintFinding[] {
  const context: unknown = machine.config.context;
  if (typeof context === "function") return [];
  const findings: LintFinding[] = [];
  const seen = new Set<unknown>();
  const visit = (value: unknown, path: string): void => {
    if (typeof value === "function" || typeof value === "symbol") {
      findings.push({
        rule: "function-in-context",
        path,
        message: `The initial context holds a ${typeof value}, which cannot be stored.`,
        fix: "Keep data in the context; put behaviour into setup({ actions, guards, actors }).",
      });
    }
    if (typeof value !== "object" || value === null || seen.has(value)) return;
    seen.add(value);
    for (const [key, member] of Object.entries(value)) visit(member, `${path}.${key}`);
  };
  visit(context, `${machine.id}.context`);
  return findings;
}
