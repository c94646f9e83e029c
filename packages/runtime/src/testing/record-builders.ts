import {
  ActorRecord,
  parseActorKey,
  type ChildEntry,
  type Effect,
  type EffectOf,
  type ParentLink,
  type Principal,
  type StoredSnapshot,
  type TimerEntry,
} from "@holdfast/protocol";

/** Who caused things in tests. */
export const TEST_PRINCIPAL: Principal = { kind: "person", id: "ada", roles: [] };

/** A snapshot in state `idle` with an empty context; change what the test is about. */
export function buildSnapshot(overrides: Partial<StoredSnapshot> = {}): StoredSnapshot {
  return { status: "active", value: "idle", context: {}, historyValue: {}, children: {}, ...overrides };
}

/**
 * A valid record of an active actor at revision 1 without timers, children and outbox. Type and id follow the key.
 * @throws ZodError when the overrides make it invalid
 */
export function buildRecord(overrides: Partial<ActorRecord> = {}): ActorRecord {
  const key = overrides.key ?? "d-0.counter.c1";
  const { type, id } = parseActorKey(key);
  return ActorRecord.parse({
    format: 1,
    key,
    type,
    id,
    genesis: "g1:1",
    principal: TEST_PRINCIPAL,
    createdAtMs: 1_800_000_000_000,
    machine: { id: type, version: "1", hash: "0" },
    rev: 1,
    status: "active",
    snapshot: buildSnapshot(),
    timers: {},
    outbox: [],
    linksOut: {},
    marks: {},
    messageIds: new Uint8Array(),
    considered: { generation: "g1", inbox: 1, control: 0 },
    directory: {},
    ...overrides,
  });
}

/** A child actor that has not settled. */
export function buildChild(overrides: Partial<ChildEntry> = {}): ChildEntry {
  return { kind: "actor", src: "counter", key: "d-1.counter.child-1", status: "active", ...overrides };
}

/** A timer of the record's own actor. */
export function buildTimer(overrides: Partial<TimerEntry> = {}): TimerEntry {
  return {
    gen: "1:0",
    dueAtMs: 1_800_000_060_000,
    to: "d-0.counter.c1",
    event: { type: "xstate.after.60000.counter.idle" },
    ...overrides,
  };
}

export function buildParentLink(overrides: Partial<ParentLink> = {}): ParentLink {
  return { key: "d-0.counter.c1", genesis: "g1:1", childId: "child", sync: false, ...overrides };
}

const EFFECTS: { readonly [K in Effect["kind"]]: EffectOf<K> } = {
  start: {
    kind: "start",
    id: "1#0",
    to: "d-1.counter.child-1",
    childId: "child",
    sync: false,
    principal: TEST_PRINCIPAL,
  },
  send: { kind: "send", id: "1#0", to: "d-1.counter.c2", n: 1, event: { type: "counted" } },
  settled: {
    kind: "settled",
    id: "1#0",
    to: "d-0.counter.c1",
    toGenesis: "g1:1",
    childId: "child",
    childKey: "d-1.counter.child-1",
    event: { type: "xstate.done.actor.child", output: 1 },
  },
  stop: { kind: "stop", id: "1#0", to: "d-1.counter.child-1" },
  emit: { kind: "emit", id: "1#0", event: { type: "counted" } },
  action: { kind: "action", id: "1#0", name: "notify", event: { type: "counted" } },
  log: { kind: "log", id: "1#0", value: "counted" },
  journal: {
    kind: "journal",
    id: "1#0",
    rev: 1,
    prevRev: 0,
    event: { type: "counted" },
    cause: { kind: "event", id: "m1" },
    from: "idle",
    to: "idle",
    status: "active",
    effects: [],
    atMs: 1_800_000_000_000,
  },
};

/** A valid effect of a kind; change what the test is about. */
export function buildEffect<K extends Effect["kind"]>(kind: K, overrides: Partial<EffectOf<K>> = {}): EffectOf<K> {
  return { ...EFFECTS[kind], ...overrides };
}
