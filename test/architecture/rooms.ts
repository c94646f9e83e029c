/**
 * The rooms and what each may know. One table for the test, the lint rules and `docs/architecture.md`.
 * `internal`: workspace packages it may depend on. `vendors`: packages from outside (tests excluded).
 */
export interface Room {
  readonly name: string;
  readonly folder: string;
  readonly tag: "pure" | "shell" | "toolbox" | "adapter" | "world" | "app" | "test";
  readonly internal: readonly string[];
  readonly vendors: readonly string[];
}

const room = (name: string, tag: Room["tag"], internal: readonly string[], vendors: readonly string[]): Room => ({
  name: name === "holdfast" ? name : `@holdfast/${name}`,
  folder: `packages/${name}`,
  tag,
  internal: internal.map((other) => (other === "holdfast" ? other : `@holdfast/${other}`)),
  vendors,
});

export const ROOMS: readonly Room[] = [
  room("protocol", "pure", [], ["zod", "@noble/hashes"]),
  room("durable", "pure", ["protocol"], ["xstate", "@noble/hashes"]),
  room("codec", "pure", ["protocol", "durable"], ["msgpackr", "crc-32", "zod"]),
  room("machines", "pure", ["protocol"], ["xstate", "zod"]),
  room("runtime", "shell", ["protocol", "durable", "codec"], ["xstate", "zod"]),
  room("jetstream", "toolbox", ["protocol"], ["@nats-io/transport-node", "zod"]),
  room("nats", "adapter", ["protocol", "jetstream", "runtime"], []),
  room("agents", "adapter", ["protocol", "runtime"], ["ai", "@ai-sdk/openai-compatible", "yaml", "zod"]),
  room("client", "adapter", ["protocol", "codec", "jetstream"], ["zod"]),
  room("process", "adapter", ["protocol", "runtime"], ["pino", "zod"]),
  room("runner", "adapter", ["protocol", "jetstream"], ["zod"]),
  room("sim-model", "world", [], ["zod"]),
  room("ledger", "world", [], ["zod"]),
  room("audit", "world", [], ["@msgpack/msgpack", "@nats-io/transport-node", "@nats-io/jetstream", "zod"]),
  room(
    "holdfast",
    "adapter",
    ["protocol", "durable", "codec", "runtime", "jetstream", "nats", "client", "process"],
    [],
  ),
];

/** Rooms that may not read a clock, draw randomness or do IO. */
export const PURE_FOLDERS = ROOMS.filter(({ tag }) => tag === "pure").map(({ folder }) => folder);
