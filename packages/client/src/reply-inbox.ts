import type { Codec } from "@holdfast/codec";
import type { Link } from "@holdfast/jetstream";
import type { MessageOutcome } from "@holdfast/protocol";

/**
 * Answers of actors to the messages of one client.
 *
 * Owns: one subscription and who waits for which id. Does not own: retries.
 */
export class ReplyInbox {
  readonly subject: string;
  readonly #waiting = new Map<string, (outcome: MessageOutcome) => void>();
  readonly #stop: () => void;

  constructor(link: Link, codec: Pick<Codec, "decodeReply">) {
    this.subject = link.newInbox();
    this.#stop = link.subscribe(this.subject, ({ bytes }) => {
      const reply = codec.decodeReply(bytes);
      this.#waiting.get(reply.id)?.(reply.outcome);
    });
  }

  /** Resolves with the outcome of a message, or undefined after `timeoutMs`. Later answers are dropped. */
  wait(
    id: string,
    timeoutMs: number,
  ): { readonly outcome: Promise<MessageOutcome | undefined>; extend(ms: number): void } {
    const settled = Promise.withResolvers<MessageOutcome | undefined>();
    const giveUp = (): void => settled.resolve(undefined);
    let timer = setTimeout(giveUp, timeoutMs);
    this.#waiting.set(id, settled.resolve);
    const outcome = settled.promise.finally(() => {
      clearTimeout(timer);
      this.#waiting.delete(id);
    });
    return {
      outcome,
      extend: (ms) => {
        clearTimeout(timer);
        timer = setTimeout(giveUp, ms);
      },
    };
  }

  close(): void {
    this.#stop();
  }
}
