import type { Deliver } from "@holdfast/durable";
import { ActorKey, RuntimeFault, type PlainEvent } from "@holdfast/protocol";
import { pause } from "./abortable-pause.ts";
import type { NodeServices } from "./cell-host.ts";

/**
 * What one run of a custom action sends by hand (`self.send`, `system.get(id).send`).
 * Each send is a message of its own, in order, under an id made of the effect's: an action that runs again after a crash and sends the
 * same again is noticed by the receiver. It is not stored with the transition: what the crash came before is sent by the next run, or never.
 */
export class ActionSends {
  readonly #services: NodeServices;
  readonly #effectId: string;
  readonly #signal: AbortSignal;
  #count = 0;
  #sending: Promise<void> = Promise.resolve();

  constructor(services: NodeServices, effectId: string, signal: AbortSignal) {
    this.#services = services;
    this.#effectId = effectId;
    this.#signal = signal;
  }

  /** @throws RuntimeFault HF-3001 when nobody has this address */
  readonly deliver: Deliver = ({ key, genesis }, event) => {
    if (!ActorKey.safeParse(key).success) {
      throw new RuntimeFault("HF-3001", `Event ${event.type}: nobody is known as ${key}. Register a systemId first.`, {
        facts: { key },
      });
    }
    this.#count += 1;
    const id = `${this.#effectId}/${this.#count}`;
    const bytes = this.#services.codec.encodeEnvelope({
      v: 1,
      kind: "send",
      id,
      ...(genesis !== undefined && { toGenesis: genesis }),
      event: plainly(event),
    });
    this.#sending = this.#sending.then(() => this.#publish(key, bytes, id));
  };

  /** Resolves when the streams have everything that was sent so far, or the partition was given up. */
  settled(): Promise<void> {
    return this.#sending;
  }

  async #publish(key: string, bytes: Uint8Array, id: string): Promise<void> {
    const { log, clock, telemetry } = this.#services;
    for (let tries = 0; !this.#signal.aborted; tries += 1) {
      const outcome = await log.publish("inbox", key, bytes, id);
      if (outcome.kind === "accepted") return;
      if (outcome.kind === "refused" && !outcome.retryable) {
        telemetry.error("actor.action-send-refused", { key, effect: this.#effectId, reason: outcome.reason });
        return;
      }
      await pause(clock, Math.min(2000, 50 * 2 ** Math.min(tries, 6)), this.#signal).catch(() => undefined);
    }
  }
}

/** XState takes a bare type as an event, too. */
const plainly = (event: PlainEvent | string): PlainEvent => (typeof event === "string" ? { type: event } : event);
