import type { Connection } from "../connection.ts";

/** The two ends of a connection without a carrier. Frames go through JSON; `lose` says which of them never arrive. */
export function connectionPair(lose: (frame: unknown) => boolean = () => false): readonly [Connection, Connection] {
  const closing = new AbortController();
  const [left, right] = [new FrameQueue(closing.signal), new FrameQueue(closing.signal)];
  const end = (incoming: FrameQueue, outgoing: FrameQueue): Connection => ({
    frames: incoming,
    closed: closing.signal,
    send: (frame) => {
      if (!closing.signal.aborted && !lose(frame)) outgoing.push(JSON.parse(JSON.stringify(frame)));
      return Promise.resolve();
    },
    close: () => closing.abort(),
  });
  return [end(left, right), end(right, left)];
}

class FrameQueue implements AsyncIterable<unknown> {
  readonly #closed: AbortSignal;
  readonly #frames: unknown[] = [];
  #wake: () => void = () => undefined;

  constructor(closed: AbortSignal) {
    this.#closed = closed;
    closed.addEventListener("abort", () => this.#wake());
  }

  push(frame: unknown): void {
    this.#frames.push(frame);
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<unknown, void> {
    for (;;) {
      // What arrived before the close is still read, as with a socket.
      while (this.#frames.length > 0) yield this.#frames.shift();
      if (this.#closed.aborted) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
