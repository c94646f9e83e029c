import { poolOf, toPlainFault } from "@holdfast/protocol";
import { PayloadStore } from "./blobs/payload-store.ts";
import { BrokerTime } from "./broker-time.ts";
import type { NodeServices } from "./cell-host.ts";
import { CrashEvidence } from "./crash-loop/crash-evidence.ts";
import { describeNode } from "./describe-node.ts";
import { FleetView } from "./fleet-view.ts";
import { createFlowControl } from "./flow-control.ts";
import { publishOutcome } from "./job-outcome.ts";
import { JobTable } from "./job-table.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { Linger } from "./linger.ts";
import { Membership } from "./membership.ts";
import { PartitionSet } from "./partition-set.ts";
import { PlacementLoop } from "./placement-loop.ts";
import { OperatorCommands } from "./quarantine/operator-commands.ts";
import { Quarantine } from "./quarantine/quarantine.ts";
import type { RuntimeNodeOptions } from "./runtime-node-options.ts";
import { compileTypes } from "./served-types.ts";
import { RestartBook } from "./restarts/restart-book.ts";
import { resolveSettings } from "./settings.ts";
import { NodeStop } from "./stop-flags/node-stop.ts";
import { StopFlag } from "./stop-flags/stop-flag.ts";
import { WriteSwitch } from "./write-switch.ts";

/** What one node is made of. */
export interface NodeParts {
  readonly view: FleetView;
  readonly services: NodeServices;
  readonly membership: Membership;
  readonly leases: LeaseKeeper;
  readonly partitions: PartitionSet;
  readonly placement: PlacementLoop;
  readonly commands: OperatorCommands;
  readonly stopFlag: StopFlag;
  readonly restarts: RestartBook;
  /** Whether another node lives that takes partitions of its pool. */
  readonly isServedElsewhere: (partition: string) => boolean;
}

export interface NodeCallbacks {
  /** Another incarnation lives under our name. */
  readonly replaced: () => void;
  /** Aborts when nothing may go on any more, not even what a job has to tell. */
  readonly stopping: AbortSignal;
}

/** Wires the parts of one node. */
export function createNodeParts(options: RuntimeNodeOptions, { replaced, stopping }: NodeCallbacks): NodeParts {
  const { name, clock, random, telemetry, ports, scheme, pools } = options;
  const incarnation = `${name}:${random.hex(8)}`;
  const settings = resolveSettings(options.settings ?? {});
  const { fleet } = ports;
  const startedAtMs = clock.wallMs();
  const time = new BrokerTime(clock);
  const view = new FleetView({ clock, telemetry, ttlMs: settings.leaseTtlMs });
  const leases = new LeaseKeeper({ incarnation, fleet, clock, random, time, ttlMs: settings.leaseTtlMs });
  const services = createServices(options, { incarnation, settings, time, view, stopping });
  const stopFlag = new StopFlag({ fleet, telemetry, changed: () => nodeStop.obey() });
  const isServedElsewhere = (partition: string): boolean =>
    view
      .liveNodes()
      .some(
        ({ heartbeat: { incarnation: other, state, pools: served } }) =>
          other !== incarnation && state === "serving" && served.includes(poolOf(partition)),
      );
  const restarts = new RestartBook({
    incarnation,
    fleet,
    view,
    clock,
    random,
    telemetry,
    settings,
    successorToken: options.process?.successorToken,
    isServedElsewhere,
  });
  const partitions: PartitionSet = new PartitionSet({
    services,
    fleet,
    leases,
    view,
    stopFlag,
    restarts,
    announce: () => membership.beat(),
    beforeTakeUp: (partition) => commands.beforeTakeUp(partition),
    moved: () => placement.plan(),
  });
  const { owners } = partitions;
  const describe = () => ({ ...describeNode(options, services, owners, startedAtMs), ...nodeStop.told });
  const commands = new OperatorCommands({ services, bucket: ports.stuck, owners });
  const membership = new Membership({
    name,
    incarnation,
    fleet,
    clock,
    time,
    view,
    leases,
    ttlMs: settings.leaseTtlMs,
    heartbeatMs: settings.heartbeatMs,
    replaced,
    describe,
  });
  const nodeStop = new NodeStop({
    flag: stopFlag,
    jobs: services.jobs,
    partitions,
    telemetry,
    announce: () => (membership.state === "joining" ? Promise.resolve() : membership.beat()),
    moved: () => placement.plan(),
  });
  const placement = new PlacementLoop({
    name,
    incarnation,
    pools,
    scheme,
    view,
    partitions,
    clock,
    telemetry,
    settings,
    // What we know of the fleet is as old as our last heartbeat.
    mayPlan: () => membership.state === "serving" && !stopping.aborted && leases.isFresh && nodeStop.mayClaim,
    abilities: () => ({ ...describe(), weight: options.weight ?? 1 }),
    isAwaited: (partition) => restarts.isAwaited(partition),
  });
  return { view, services, membership, leases, partitions, placement, commands, stopFlag, restarts, isServedElsewhere };
}

function createServices(
  options: RuntimeNodeOptions,
  given: Pick<NodeServices, "incarnation" | "settings" | "time"> & {
    readonly view: FleetView;
    readonly stopping: AbortSignal;
  },
): NodeServices {
  const { name, clock, random, telemetry, ports, codec, crashPoints } = options;
  const { incarnation, settings, time, view, stopping } = given;
  const flow = createFlowControl(settings, clock);
  const services: NodeServices = {
    node: name,
    incarnation,
    scheme: options.scheme,
    types: compileTypes(options.definitions, options.homes),
    codec,
    textHash: options.textHash,
    records: ports.records,
    log: ports.log,
    journal: ports.journal,
    payloads: new PayloadStore({ codec, blobs: ports.blobs, clock }),
    clock,
    random,
    time,
    jobs: new JobTable({
      node: name,
      limits: flow.jobs,
      publish: (job, outcome) => publishOutcome(services, job, outcome, stopping),
      reach: (point, key) => crashPoints.reach(point, key),
      failed: (key, error) => telemetry.error("job.failed", { key, ...reasonOf(error) }),
      held: (bytes) => flow.memory.hold("jobs", bytes),
      monotonicMs: () => clock.monotonicMs(),
    }),
    writeSwitch: new WriteSwitch(view, name),
    quarantine: new Quarantine({ bucket: ports.stuck, incarnation, time, telemetry }),
    evidence: new CrashEvidence({ bucket: ports.stuck, incarnation, clock, time, telemetry }),
    crashPoints,
    telemetry,
    settings,
    journalLinger: new Linger(clock, settings.journalLingerMs),
    flow,
  };
  return services;
}

function reasonOf(error: unknown): { readonly code: string; readonly reason: string } {
  const { code, message } = toPlainFault(error, "HF-4001");
  return { code, reason: message };
}
