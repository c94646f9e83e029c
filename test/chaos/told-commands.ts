import type { AcceptedCommand } from "@holdfast/audit";
import { hash128, principalToken, type PlainEvent, type Principal } from "@holdfast/protocol";
import type { Client } from "holdfast";
import { setTimeout as pause } from "node:timers/promises";

const PRINCIPAL: Principal = { kind: "person", id: "local", roles: [] };
const ANSWER_MS = 6000;
const AGAIN_MS = 250;

export interface CommandOptions {
  /** Same key, same target: one command. */
  readonly idempotencyKey: string;
  /** It may find an actor that has ended, or that has nothing to do with it. */
  readonly mayBeIgnored?: boolean;
}

/** Sends commands until somebody says what became of them, and writes down what was said: half of what the checker judges by. */
export class ToldCommands {
  readonly accepted: AcceptedCommand[] = [];
  readonly #client: () => Client;
  readonly #signal: AbortSignal;

  constructor(client: () => Client, signal: AbortSignal) {
    this.#client = client;
    this.#signal = signal;
  }

  /** @returns key of the actor */
  start(type: string, id: string, input: unknown): Promise<string> {
    const { holdfast } = this.#client();
    const key = holdfast.key(type, id);
    const options = { idempotencyKey: `start-${id}`, timeoutMs: ANSWER_MS };
    return this.#tell(key, { idempotencyKey: options.idempotencyKey }, () => holdfast.start(type, id, input, options));
  }

  /** @returns key of the actor */
  send(key: string, event: PlainEvent, options: CommandOptions): Promise<string> {
    const { holdfast } = this.#client();
    const { idempotencyKey } = options;
    return this.#tell(key, options, () => holdfast.send(key, event, { idempotencyKey, timeoutMs: ANSWER_MS }));
  }

  async #tell(
    key: string,
    { idempotencyKey, mayBeIgnored }: CommandOptions,
    send: () => ReturnType<Client["holdfast"]["start"]>,
  ): Promise<string> {
    // As the client makes the id of a message that has a key: the journal names it as the cause of its macrostep.
    const messageId = hash128(`${key}\0${principalToken(PRINCIPAL)}\0${idempotencyKey}`);
    for (;;) {
      this.#signal.throwIfAborted();
      const result = await send().catch(() => undefined); // nobody knows: again, under the same key
      if (result === undefined) {
        await pause(AGAIN_MS);
        continue;
      }
      this.accepted.push({
        key,
        messageId,
        outcome: result.kind,
        ...(result.kind === "applied" && { rev: result.rev }),
        ...(mayBeIgnored === true && { mayBeIgnored }),
      });
      return key;
    }
  }
}
