import type { Codec } from "@holdfast/codec";
import type { FleetValue, FleetRegistry, RecordStore } from "@holdfast/runtime/ports";
import type { NodeWiring } from "holdfast/wiring";
import { z } from "zod";

/** Ways in which a node can be built wrongly, one per promise that holds the rest up. */
export const PlantedBreak = z.enum(["cas", "marks", "fence", "outbox", "barrier", "carryover"]);
export type PlantedBreak = z.infer<typeof PlantedBreak>;

/** What a break is planted into: the seams of a node, handed to it like the real ones. */
interface Seams {
  readonly codec: Codec;
  readonly records: RecordStore;
  readonly fleet: FleetRegistry;
}

/** Plants a break between a node and what it is given. Only the harness composes nodes so; no setting of a shipped node leads here. */
export function plant(planted: PlantedBreak, { codec, ports }: NodeWiring): NodeWiring {
  const seams = PLANTED_BREAKS[planted]({ codec, records: ports.records, fleet: ports.fleet });
  return { codec: seams.codec, ports: { ...ports, records: seams.records, fleet: seams.fleet } };
}

const PLANTED_BREAKS: Readonly<Record<PlantedBreak, (seams: Seams) => Seams>> = {
  /** A commit replaces whatever is there. */
  cas: (seams) => ({
    ...seams,
    records: overriding(seams.records, {
      commit: async (request) => {
        for (;;) {
          const current = await seams.records.load(request.key);
          const outcome = await seams.records.commit({ ...request, expectedSeq: current?.seq ?? 0 });
          if (outcome.kind !== "stale") return outcome;
        }
      },
    }),
  }),

  /** A receiver forgets which messages it took. */
  marks: (seams) => ({
    ...seams,
    codec: overriding(seams.codec, {
      encodeRecord: (record, header) => {
        record.messageIds = new Uint8Array(); // in memory too: the cell goes on with this very object
        return seams.codec.encodeRecord(record, header);
      },
    }),
  }),

  /** A node goes on with what it owns, whatever epoch others have. */
  fence: (seams) => ({
    ...seams,
    codec: overriding(seams.codec, {
      decodeRecord: (bytes) => {
        const { header, record } = seams.codec.decodeRecord(bytes);
        return { header: { ...header, epoch: 0 }, record };
      },
    }),
    records: overriding(seams.records, { loadCheckpoint: () => Promise.resolve(undefined) }),
    fleet: withoutForeignLeases(seams.fleet),
  }),

  /** A record is stored without what it decided to send. */
  outbox: (seams) => ({
    ...seams,
    codec: overriding(seams.codec, {
      encodeRecord: (record, header) => seams.codec.encodeRecord({ ...record, outbox: [] }, header),
    }),
  }),

  /** A takeover looks for work, and stops before it has seen anything. */
  barrier: (seams) => ({
    ...seams,
    records: overriding(seams.records, {
      scan: ({ parts }) => Promise.resolve(Math.max(...parts.map(({ fromSeq }) => fromSeq))),
    }),
  }),

  /** The outbox of a commit replaces what had not left yet. */
  carryover: (seams) => ({
    ...seams,
    codec: overriding(seams.codec, {
      encodeRecord: (record, header) => {
        const outbox = record.outbox.filter(({ id }) => id.startsWith(`${record.rev}#`));
        return seams.codec.encodeRecord({ ...record, outbox }, header);
      },
    }),
  }),
};

/** Sees leases until it holds them itself, and no later ones. */
function withoutForeignLeases(fleet: FleetRegistry): FleetRegistry {
  const held = new Set<string>();
  return overriding(fleet, {
    compareAndSet: async (key, ...rest) => {
      const outcome = await fleet.compareAndSet(key, ...rest);
      if (outcome.kind === "committed") held.add(key);
      return outcome;
    },
    watch: (deliver: (value: FleetValue) => void) =>
      fleet.watch((value) => {
        if (!held.has(value.key)) deliver(value);
      }),
  });
}

/** The same object, with some of its methods replaced. */
function overriding<T extends object>(inner: T, methods: Partial<T>): T {
  return new Proxy(inner, {
    get: (target, name) => {
      const own: unknown = Reflect.get(methods, name);
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
