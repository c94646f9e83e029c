import {
  AuditEntry,
  hash128,
  OperatorCommand,
  StuckEntry,
  type CommandOutcome,
  type OperatorVerb,
} from "@holdfast/protocol";
import type { FleetValue } from "../ports/index.ts";
import type { MemoryFleet } from "./memory-fleet.ts";

/** What an operator does: reads the bucket of what is stuck, and puts commands into it. No node is asked. */
export class OperatorDesk {
  readonly entries = new Map<string, StuckEntry>();
  readonly #fleet: MemoryFleet;
  readonly #outcomes = new Map<string, CommandOutcome>();
  #commands = 0;

  private constructor(fleet: MemoryFleet) {
    this.#fleet = fleet;
  }

  static async open(fleet: MemoryFleet): Promise<OperatorDesk> {
    const desk = new OperatorDesk(fleet);
    await fleet.outsider.stuck.watch((value) => desk.#seen(value));
    return desk;
  }

  actor(key: string): StuckEntry | undefined {
    return this.entries.get(`entry.${key}`);
  }

  message(key: string, messageId: string): StuckEntry | undefined {
    return this.entries.get(`entry.${key}.${hash128(messageId)}`);
  }

  /** Bytes of a quarantined message, as they lie in the bucket. */
  async bytes(key: string, messageId: string): Promise<Uint8Array | undefined> {
    return (await this.#fleet.outsider.stuck.get(`bytes.${key}.${hash128(messageId)}`))?.bytes;
  }

  /** Leaves a command in the bucket. @returns its token */
  async leave(verb: OperatorVerb, key: string, messageId?: string): Promise<string> {
    this.#commands += 1;
    const token = `operator-${this.#commands}`;
    const command: OperatorCommand = {
      v: 1,
      token,
      verb,
      key,
      by: "person-ada",
      ...(messageId !== undefined && { messageId }),
    };
    const bytes = new TextEncoder().encode(JSON.stringify(command));
    const written = await this.#fleet.outsider.stuck.put(`command.${key}`, bytes);
    if (written === undefined) throw new Error("the command was not stored");
    return token;
  }

  outcome(token: string): CommandOutcome | undefined {
    return this.#outcomes.get(token);
  }

  async command(verb: OperatorVerb, key: string, messageId?: string): Promise<CommandOutcome> {
    const token = await this.leave(verb, key, messageId);
    await this.#fleet.until(`${verb} of ${key} has an outcome`, () => this.outcome(token) !== undefined);
    const outcome = this.outcome(token);
    if (outcome === undefined) throw new Error("unreachable: it was waited for");
    return outcome;
  }

  audited(): readonly AuditEntry[] {
    return this.#fleet.broker.audited().map(({ event }) => AuditEntry.parse(event));
  }

  #seen({ key, bytes }: FleetValue): void {
    if (bytes.length === 0) this.entries.delete(key);
    else if (key.startsWith("entry."))
      this.entries.set(key, StuckEntry.parse(JSON.parse(new TextDecoder().decode(bytes))));
    else if (key.startsWith("command.")) {
      const { token, outcome } = OperatorCommand.parse(JSON.parse(new TextDecoder().decode(bytes)));
      if (outcome !== undefined) this.#outcomes.set(token, outcome);
    }
  }
}
