import type { PlainEvent } from "@holdfast/protocol";

/** One thing that happens to the root actor of a scenario from outside. */
export type Operation = { readonly send: PlainEvent } | { readonly advanceMs: number };

export interface Scenario {
  readonly name: string;
  readonly input?: Readonly<Record<string, unknown>>;
  readonly operations: readonly Operation[];
}

const send = (type: string, more: Readonly<Record<string, unknown>> = {}): Operation => ({ send: { type, ...more } });
const advance = (advanceMs: number): Operation => ({ advanceMs });

/** What happens to each of the differential machines. */
export const SCENARIOS: readonly Scenario[] = [
  {
    name: "light",
    operations: [
      advance(999),
      advance(1),
      send("RESET"),
      advance(200),
      advance(500),
      advance(500),
      send("RESET"),
      advance(600),
      advance(300),
      advance(100),
      advance(200),
    ],
  },
  { name: "acts", operations: [send("GO"), send("GO")] },
  { name: "par", operations: [send("E"), advance(50), send("F")] },
  { name: "promises", input: { k: 5 }, operations: [advance(1)] },
  { name: "nested", operations: [advance(100), advance(1)] },
  {
    name: "todos",
    operations: [
      send("ADD", { t: "x" }),
      send("ADD", { t: "y" }),
      send("PING", { i: 0 }),
      send("PING", { i: 2 }),
      send("FINISH", { i: 1 }),
      send("DROP", { i: 0 }),
      send("PING", { i: 1 }),
    ],
  },
  {
    name: "delayed",
    operations: [send("ARM"), advance(150), send("DISARM"), advance(300), send("ARM"), advance(299), advance(1)],
  },
  { name: "hist", operations: ["N", "OFF", "DEEP", "UP", "OFF", "SHALLOW"].map((type) => send(type)) },
  { name: "synced", operations: [send("INC"), send("INC"), send("ADD", { v: 5 })] },
  { name: "approval", operations: [advance(1000), advance(999), advance(1), send("APPROVE"), advance(5000)] },
  { name: "cb", operations: [send("SAY", { v: "a" }), send("SAY", { v: "b" }), send("OFF"), send("SAY", { v: "c" })] },
  { name: "errors", operations: [send("HIT"), send("DIE")] },
  { name: "systemIds", operations: [send("GO"), send("GO")] },
  { name: "finisher", operations: [send("INC"), send("INC"), send("INC"), advance(6000)] },
];
