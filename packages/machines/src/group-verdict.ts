import type { ToolResult } from "@holdfast/protocol";
import { z } from "zod";
import type { NamedCall } from "./call-result.ts";
import type { TaskBook, TaskEntry } from "./task-book.ts";
import { openTasks } from "./task-book.ts";
import { reportFields } from "./task-report.ts";

/** When the call of a group is settled: `all` ended, `any` succeeded, a `quorum` succeeded, or one ended (`race`). */
export const GroupMode = z.enum(["all", "any", "quorum", "race"]);
export type GroupMode = z.infer<typeof GroupMode>;

export interface GroupVerdict {
  readonly result: ToolResult;
  /** Members that have not ended. */
  readonly losers: readonly string[];
}

/**
 * Whether a group is settled, and how. It is as soon as nothing that can still happen would change whether it succeeded.
 *
 * @param book  with the members of the group among its entries: `group` is the child id of the call
 * @returns undefined while it is not
 */
export function groupVerdict(
  call: NamedCall & { readonly childId: string },
  { mode, quorum }: { readonly mode: GroupMode; readonly quorum: number },
  book: TaskBook,
): GroupVerdict | undefined {
  const members = book.filter(({ group }) => group === call.childId);
  const open = openTasks(members);
  const ended = members.length - open.length;
  const succeeded = members.filter(({ status }) => status === "completed").length;
  const wanted = { all: members.length, any: 1, quorum, race: 1 }[mode];
  const isOver =
    mode === "all"
      ? open.length === 0
      : (mode === "race" && ended > 0) || succeeded >= wanted || succeeded + open.length < wanted;
  if (!isOver) return undefined;
  const content = JSON.stringify({
    mode,
    succeeded,
    ...(mode === "quorum" && { quorum }),
    members: members.map(memberFields),
  });
  return {
    result: { callId: call.callId, name: call.name, ok: succeeded >= wanted, content },
    losers: open.map(({ childId }) => childId),
  };
}

function memberFields(member: TaskEntry): Readonly<Record<string, unknown>> {
  const { childId, agent, status, report } = member;
  if (openTasks([member]).length > 0) return { agent, taskId: childId, status, isStopped: true };
  return report === undefined ? { agent, taskId: childId, status } : { agent, ...reportFields(childId, report) };
}
