import type { FleetOverview, NodeOverview } from "@holdfast/client";
import { poolOf } from "@holdfast/protocol";
import type { Command } from "commander";
import { table } from "../output.ts";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";

/** `holdfast fleet` */
export function fleetCommand(program: Command, context: CommandContext): void {
  program
    .command("fleet")
    .description("nodes, who owns which partition, what nobody owns, what was recovered")
    .option("--json")
    .action((options: GlobalOptions) =>
      withClient(context, options, "operator", async ({ holdfast }, output) => {
        const { stuck, ...overview } = await holdfast.read.overview();
        const waiting = stuck.flatMap(({ reports }) => reports.filter(({ kind }) => kind === "unserved"));
        const unserved = [...new Set(waiting.map(({ key }) => key.split(".")[1] ?? key))];
        const stop = await holdfast.panic.state();
        const stopped = stop.isRaised ? [`\nSTOPPED by ${stop.by} (${stop.reason}), revision ${stop.revision}`] : [];
        output.result({ ...overview, unserved, stop }, [text(overview, unserved), ...stopped].join("\n"));
      }),
    );
}

function text(overview: FleetOverview, unserved: readonly string[]): string {
  const { nodes, partitions, unowned } = overview;
  return [
    table([
      ["node", "state", "pools", "weight", "partitions", "actors", "jobs", "heartbeat", "build", "incarnation"],
      ...nodes.map((node) => [
        node.name,
        node.state,
        node.pools.join(","),
        node.weight,
        node.partitions,
        node.actors,
        node.custody > 0 ? `${node.jobs} (${node.custody} of partitions given away)` : node.jobs,
        `${(node.silentMs / 1000).toFixed(1)} s ago`,
        node.build ?? "-",
        node.incarnation,
      ]),
    ]),
    "",
    ...machineLines(nodes),
    table([
      ["partition", "owner", "epoch", "cursor", "lag", "late"],
      ...partitions.map(({ partition, owner, epoch, cursor, lag, late, why }) => [
        partition,
        owner ?? `NOBODY: ${why ?? ""}`,
        epoch,
        cursor,
        lag ?? "?",
        late,
      ]),
    ]),
    ...alarms(overview, unserved),
    unowned.length === 0 ? `\nevery partition has an owner` : "",
  ]
    .join("\n")
    .trimEnd();
}

/** Which machine versions and formats which nodes know; one line when all agree. */
function machineLines(nodes: readonly NodeOverview[]): readonly string[] {
  const known = new Map<string, string[]>();
  for (const { name, machines, formats, state } of nodes) {
    if (state === "left") continue;
    const said = `machines ${Object.entries(machines)
      .map(([type, version]) => `${type} ${version.split("#")[0] ?? ""}`)
      .join(", ")} · record formats ${formats.join(", ")}`;
    known.set(said, [...(known.get(said) ?? []), name]);
  }
  return [...known].flatMap(([said, names]) => [`${names.join(", ")}: ${said}`]).concat(known.size > 0 ? [""] : []);
}

function alarms({ partitions, unowned }: FleetOverview, unserved: readonly string[]): readonly string[] {
  const pools = new Map<string, number>();
  for (const partition of unowned) pools.set(poolOf(partition), (pools.get(poolOf(partition)) ?? 0) + 1);
  const lagOf = (pool: string): number =>
    partitions
      .filter(({ partition, owner }) => owner === undefined && poolOf(partition) === pool)
      .reduce((sum, { lag }) => sum + (lag ?? 0), 0);
  return [
    ...[...pools].map(
      ([pool, count]) => `\nALARM: nobody owns ${count} partitions of pool ${pool}; ${lagOf(pool)} messages wait there`,
    ),
    ...(unserved.length === 0
      ? []
      : [`\nALARM: no node of their pool serves ${unserved.join(", ")}; see holdfast stuck`]),
  ];
}
