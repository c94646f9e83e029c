import { allPartitionsOf } from "@holdfast/protocol";
import { CounterpartWatch } from "./counterparts/counterpart-watch.ts";
import { expireHeld } from "./holds/held-expiry.ts";
import { InboxFillWatch } from "./inbox-fill-watch.ts";
import { InboxTrimmer } from "./inbox-trimmer.ts";
import { LoadReporter } from "./load-reporter.ts";
import type { NodeParts } from "./node-parts.ts";
import { repeatEvery } from "./repeated-work.ts";
import { RetentionDuty } from "./retention/retention-duty.ts";
import type { RuntimeNodeOptions } from "./runtime-node-options.ts";
import { StuckTeller } from "./stuck-teller.ts";

/**
 * What a node does again and again while it serves: telling, sweeping, trimming, removing what nobody needs any more.
 *
 * Owns: the loops. Does not own: what each of them does.
 */
export class NodeDuties {
  readonly #options: RuntimeNodeOptions;
  readonly #parts: NodeParts;
  readonly #cancels: (() => void)[] = [];

  constructor(options: RuntimeNodeOptions, parts: NodeParts) {
    this.#options = options;
    this.#parts = parts;
  }

  /** @param tick  what comes with every heartbeat */
  start(tick: () => Promise<void>): void {
    const { settings } = this.#parts.services;
    const { partitions } = this.#parts;
    this.#every(settings.heartbeatMs, tick);
    const { scheme, ports, telemetry } = this.#options;
    const fill = new InboxFillWatch({ scheme, view: this.#parts.view, log: ports.log, telemetry });
    this.#tell(this.#watchCounterparts(), fill);
    this.#every(settings.sweepMs, () => partitions.sweep());
    this.#every(settings.sweepMs, () => expireHeld(this.#parts.services, partitions.owners));
    this.#every(settings.cursorFlushMs, () => fill.look(new Set(partitions.owners.keys())));
    this.#trim();
    this.#retain();
  }

  /** What runs at this moment is not interrupted. */
  stop(): void {
    for (const cancel of this.#cancels) cancel();
  }

  /** Twice in a sweep: what is found twice is listed within one. */
  #watchCounterparts(): CounterpartWatch {
    const { partitions, view, services } = this.#parts;
    const watch = new CounterpartWatch({ services, view, owners: partitions.owners });
    this.#every(Math.ceil(services.settings.sweepMs / 2), () => watch.look());
    return watch;
  }

  #tell(counterparts: CounterpartWatch, fill: InboxFillWatch): void {
    const { name, clock, ports, scheme } = this.#options;
    const { partitions, placement, services } = this.#parts;
    const { heartbeatMs, busyFrom } = services.settings;
    const teller = new StuckTeller(ports.fleet, name);
    this.#every(heartbeatMs, () =>
      teller.tell([
        ...placement.unowned.reports(),
        ...fill.reports(),
        ...partitions.reports(),
        ...counterparts.reports(),
      ]),
    );
    const load = new LoadReporter({
      node: name,
      fleet: ports.fleet,
      log: ports.log,
      clock,
      partitions: () => partitions.owners,
      partitionsPerStream: Math.max(1, allPartitionsOf(scheme).length / scheme.shards),
      busyFrom,
      validMs: 3 * heartbeatMs,
    });
    this.#every(heartbeatMs, () => load.report());
  }

  #trim(): void {
    const { clock, ports, scheme } = this.#options;
    const { partitions, view, services } = this.#parts;
    const trimmer = new InboxTrimmer({ scheme, view, log: ports.log, clock });
    this.#every(services.settings.cursorFlushMs, async () => {
      await partitions.flushCursors();
      await trimmer.trim(new Set(partitions.owners.keys()));
    });
  }

  /** What nobody needs any more goes, beside everything else. */
  #retain(): void {
    const { retention: store, erasures, blobSweep: blobs } = this.#options.ports;
    if (store === undefined) return;
    const { view, services } = this.#parts;
    const { owners } = this.#parts.partitions;
    const partitions = allPartitionsOf(this.#options.scheme);
    const duty = new RetentionDuty({ services, view, owners, store, erasures, blobs, partitions });
    this.#every(services.settings.retentionMs, () => duty.look());
    if (blobs !== undefined) this.#every(services.settings.blobSweepMs, () => duty.sweep());
  }

  #every(ms: number, work: () => Promise<void>): void {
    const { clock, telemetry } = this.#options;
    const failed = (reason: string): void => telemetry.warn("node.loop-failed", { reason });
    this.#cancels.push(repeatEvery(clock, ms, work, failed));
  }
}
