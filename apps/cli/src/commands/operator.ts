import { RuntimeFault } from "@holdfast/protocol";
import type { Command } from "commander";
import { table } from "../output.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";
import { localStack } from "./connect.ts";
import { targetOf } from "./target.ts";

/** `holdfast actor|doctor` */
export function operatorCommands(program: Command, context: CommandContext): void {
  const actor = program.command("actor").description("stored state of any actor");
  actor
    .command("show")
    .argument("<type/id>")
    .option("--json")
    .action((target: string, options: GlobalOptions) =>
      withClient(context, options, "operator", async ({ holdfast }, output) => {
        const key = targetOf(target, (type, id) => holdfast.key(type, id));
        const found = await holdfast.read.actor(key);
        if (found === undefined) throw new RuntimeFault("HF-3001", `${key}: there is no such actor.`);
        const { header, record } = found;
        const shown = {
          header,
          value: record.snapshot.value,
          timers: record.timers,
          children: Object.fromEntries(
            Object.entries(record.snapshot.children).map(([id, { kind, key, status }]) => [id, { kind, key, status }]),
          ),
          outbox: record.outbox.map(({ kind, id }) => ({ kind, id })),
          machine: record.machine,
        };
        output.result(shown, JSON.stringify(shown, undefined, 2));
      }),
    );
  actor
    .command("journal")
    .argument("<type/id>")
    .option("--json")
    .action((target: string, options: GlobalOptions) =>
      withClient(context, options, "operator", async ({ holdfast }, output) => {
        const key = targetOf(target, (type, id) => holdfast.key(type, id));
        const entries = await holdfast.read.journal(key);
        if (entries.length === 0) throw new RuntimeFault("HF-3001", `${key}: there is no such actor.`);
        const rows = entries.map(
          ({ rev, event, from, to, node, atMs }) =>
            [rev, new Date(atMs).toISOString(), node, event.type, stateText(from), stateText(to)] as const,
        );
        output.result(
          { key, entries: entries.map(({ event, ...entry }) => ({ ...entry, event: event.type })) },
          table([["rev", "time", "node", "event", "from", "to"], ...rows]),
        );
      }),
    );

  program
    .command("doctor")
    .description("checks that everything can be reached")
    .option("--json")
    .action((options: GlobalOptions) =>
      withClient(context, options, "operator", async ({ holdfast }, output) => {
        const stack = await localStack(context.config());
        const { nodes, leases } = await holdfast.read.fleet();
        const live = nodes.filter(({ state }) => state === "serving");
        const facts = {
          namespace: holdfast.manifest.ns,
          nats: stack?.natsUrl ?? context.config().HOLDFAST_NATS_URL,
          server: holdfast.serverVersion,
          durabilityClass: stack?.durabilityClass ?? "unknown: a server of your own",
          pools: holdfast.manifest.pools,
          shards: holdfast.manifest.shards,
          nodes: live.map(({ name }) => name),
          partitionsHeld: leases.filter(({ state }) => state === "held").length,
          home: stack === undefined ? undefined : context.config().HOLDFAST_HOME,
        };
        output.result(
          { ok: live.length > 0, ...facts },
          Object.entries(facts)
            .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
            .join("\n"),
        );
        if (live.length === 0) process.exitCode = 1;
      }),
    );
}

const stateText = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
