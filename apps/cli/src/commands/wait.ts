import type { WaitFilter, WaitRow } from "@holdfast/client";
import { RuntimeFault } from "@holdfast/protocol";
import { InvalidArgumentError, type Command } from "commander";
import { table } from "../output.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";
import { untilStopped } from "./until-stopped.ts";
import { waitReplyCommands } from "./wait-reply.ts";

interface ListOptions extends GlobalOptions {
  readonly all?: boolean;
  readonly assignee?: string;
  readonly role?: string;
  readonly user?: string;
  readonly tenant?: string;
  readonly conversation?: string;
  readonly kind?: string;
  readonly olderThan?: number;
  readonly expiresWithin?: number;
  readonly watch?: boolean;
}

/** `holdfast wait …` */
export function waitCommands(program: Command, context: CommandContext): void {
  const wait = program.command("wait").description("questions that wait for a person");
  wait
    .command("list")
    .option("--all", "settled ones too")
    .option("--assignee <who>", "asked of this one: a word, person-<id> or service-<id>")
    .option("--role <role>", "asked of this role")
    .option("--user <user>", "of conversations of this user")
    .option("--tenant <tenant>", "of conversations of this tenant")
    .option("--conversation <id>", "asked by this conversation")
    .option("--kind <kind>", "of this kind")
    .option("--older-than <seconds>", "asked at least so long ago", secondsOption)
    .option("--expires-within <seconds>", "expire within so long", secondsOption)
    .option("--watch", "then every change, until it is stopped")
    .option("--json")
    .action((options: ListOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const filter = filterOf(options);
        if (options.watch !== true) {
          const waits = await holdfast.waits.list(filter);
          output.result({ waits }, table([HEAD, ...waits.map(lineOf)]));
          return;
        }
        for await (const change of holdfast.waits.watch(filter, untilStopped())) {
          output.result(change, `${change.kind}  ${lineOf(change.wait).join("  ")}`);
        }
      }),
    );
  waitReplyCommands(wait, context);
}

const HEAD = ["wait", "status", "for", "expires", "question"];

const lineOf = ({ id, status, outcome, assignee, expiresAtMs, question }: WaitRow): readonly string[] => [
  id,
  status === "consumed" ? `${status} (${outcome ?? "?"})` : status,
  assignee,
  expiresAtMs === undefined ? "never" : new Date(expiresAtMs).toISOString(),
  question,
];

function filterOf({ all, olderThan, expiresWithin, watch, ...rest }: ListOptions): WaitFilter {
  if (watch === true && (olderThan !== undefined || expiresWithin !== undefined)) {
    throw new RuntimeFault(
      "HF-1001",
      "--watch goes with neither --older-than nor --expires-within: time alone is no change.",
    );
  }
  const { assignee, role, user, tenant, conversation, kind } = rest;
  return {
    status: all === true ? "all" : "open",
    ...(assignee !== undefined && { assignee }),
    ...(role !== undefined && { role }),
    ...(user !== undefined && { user }),
    ...(tenant !== undefined && { tenant }),
    ...(conversation !== undefined && { conversation }),
    ...(kind !== undefined && { kind }),
    ...(olderThan !== undefined && { olderThanMs: olderThan * 1000 }),
    ...(expiresWithin !== undefined && { expiresWithinMs: expiresWithin * 1000 }),
  };
}

function secondsOption(text: string): number {
  const seconds = Number(text);
  if (text.trim() !== "" && Number.isFinite(seconds) && seconds >= 0) return seconds;
  throw new InvalidArgumentError("Expected a number of seconds.");
}
