import type { Delegation, FamilyEntry } from "@holdfast/client";
import type { Command } from "commander";
import { table } from "../output.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";
import { targetOf } from "./target.ts";
import { untilStopped } from "./until-stopped.ts";

interface FamilyCommandOptions extends GlobalOptions {
  readonly from?: string;
  readonly follow?: boolean;
}

/** `holdfast family`, `holdfast delegations` */
export function familyCommands(program: Command, context: CommandContext): void {
  program
    .command("family")
    .description("every step of a conversation and of all below it, in one order, each once")
    .argument("<conversation>", "its id, or <type>/<id> of another actor")
    .option("--from <cursor>", "a cursor of an earlier line")
    .option("--follow", "wait for more until all have ended")
    .option("--json")
    .action((conversation: string, { from, follow = false, ...options }: FamilyCommandOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const root = rootOf(conversation, (type, id) => holdfast.key(type, id));
        for await (const item of holdfast.family({ root, from, follow, signal: untilStopped() }))
          output.result(itemView(item), `${itemText(item)}  ${item.cursor}`);
      }),
    );

  program
    .command("delegations")
    .description("what became of every call of a conversation and of those below it")
    .argument("<conversation>", "its id, or <type>/<id> of another actor")
    .option("--json")
    .action((conversation: string, options: GlobalOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        const root = rootOf(conversation, (type, id) => holdfast.key(type, id));
        const delegations = await holdfast.delegations(root, untilStopped());
        output.result(
          { root, delegations },
          table([
            ["call", "what", "decided", "created", "attempts", "reissued", "settled", "applied"],
            ...delegations.map(rowOf),
          ]),
        );
      }),
    );
}

const rootOf = (text: string, key: (type: string, id: string) => string): string =>
  /[/.]/.test(text) ? targetOf(text, key) : key("conversation", text);

/** Without the content of events: that is for whoever may read conversations. */
function itemView(item: FamilyEntry): object {
  const { kind, key, parent, cursor } = item;
  if (item.kind === "absent") return { kind, key, parent, cursor };
  const { event, blobs: _outside, ...entry } = item.entry;
  return { kind, key, parent, entry: { ...entry, event: event.type }, cursor };
}

function itemText(item: FamilyEntry): string {
  if (item.kind === "absent") return `${item.kind}  ${item.key}`;
  const { key, rev, atMs, event, to, status, node } = item.entry;
  const state = typeof to === "string" ? to : JSON.stringify(to);
  return [new Date(atMs).toISOString(), item.kind, `${key}@${rev}`, event.type, state, status, node].join("  ");
}

function rowOf(one: Delegation): readonly (string | number)[] {
  const { callId, src, decided, created, attempts, reissued, settled, applied } = one;
  const after = (atMs: number | undefined): string => (atMs === undefined ? "" : `+${atMs - decided.atMs} ms`);
  return [
    callId,
    src,
    new Date(decided.atMs).toISOString(),
    after(created?.atMs),
    attempts,
    reissued,
    settled === undefined ? "" : `${after(settled.atMs)} ${settled.status}`,
    after(applied?.atMs),
  ];
}
