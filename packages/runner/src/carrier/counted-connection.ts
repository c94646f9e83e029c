// CountedConnection — a connection over a carrier that may lose messages.
// Owns: the counts of both directions, when the other side is taken for gone.  Does not own: the carrier.
//   K1 order-or-end   a frame that is not the next one, and a beat that tells of one that never came, end the connection
//   K2 bounded        at most `WINDOW` frames are under way: the sender waits for the reader, not for memory
//   K3 silence-ends   a side that was not heard for `SILENCE_MS` is gone

import type { Connection } from "../connection.ts";
import { Packet } from "./packet.ts";

/** Frames that may be under way in one direction. */
export const WINDOW = 64;
export const BEAT_MS = 1000;
const SILENCE_MS = 5 * BEAT_MS;

/** Sends packets; one that cannot be sent is lost. */
export type SendPacket = (packet: Packet) => void;

/** See the invariants at the top of the file. Whoever makes one calls `beat` every BEAT_MS until it is closed. */
export class CountedConnection implements Connection {
  readonly #sendPacket: SendPacket;
  readonly #closing = new AbortController();
  readonly #arrived: unknown[] = [];
  #received = 0;
  #taken = 0;
  #sent = 0;
  #takenThere = 0;
  #saidTaken = 0;
  #silentBeats = 0;
  #wakeReader: () => void = () => undefined;
  readonly #wakeSenders = new Set<() => void>();

  constructor(sendPacket: SendPacket) {
    this.#sendPacket = sendPacket;
  }

  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  readonly frames: AsyncIterable<unknown> = { [Symbol.asyncIterator]: () => this.#read() };

  async send(frame: unknown): Promise<void> {
    while (!this.closed.aborted && this.#sent - this.#takenThere >= WINDOW)
      await new Promise<void>((resolve) => this.#wakeSenders.add(resolve)); // K2
    if (this.closed.aborted) return;
    this.#sent += 1;
    this.#sendPacket(Packet.parse({ kind: "frame", n: this.#sent, frame }));
  }

  close(): void {
    if (this.closed.aborted) return;
    this.#sendPacket({ kind: "end" });
    this.#end();
  }

  /** Tells the other side what was sent and taken, and ends a connection on which it was silent for too long (K3). */
  beat(): void {
    if (this.closed.aborted) return;
    this.#silentBeats += 1;
    if (this.#silentBeats * BEAT_MS > SILENCE_MS) return this.close();
    this.#sayTaken();
  }

  /** Takes what the carrier brought. */
  arrived(packet: Packet): void {
    if (this.closed.aborted) return;
    this.#silentBeats = 0;
    switch (packet.kind) {
      case "frame":
        return this.#frameArrived(packet.n, packet.frame);
      case "beat":
        if (packet.sent !== this.#received) return this.close(); // K1
        this.#takenThere = Math.max(this.#takenThere, packet.taken);
        return this.#wakeAll();
      case "end":
        return this.#end();
    }
  }

  #frameArrived(n: number, frame: unknown): void {
    if (n !== this.#received + 1 || this.#received - this.#taken >= WINDOW) return this.close(); // K1, K2
    this.#received = n;
    this.#arrived.push(frame);
    this.#wakeReader();
  }

  async *#read(): AsyncGenerator<unknown, void> {
    for (;;) {
      // What arrived before the end is still read.
      while (this.#arrived.length > 0) {
        const frame = this.#arrived.shift();
        this.#taken += 1;
        if (this.#taken - this.#saidTaken >= WINDOW / 2) this.#sayTaken();
        yield frame;
      }
      if (this.closed.aborted) return;
      await new Promise<void>((resolve) => (this.#wakeReader = resolve));
    }
  }

  #sayTaken(): void {
    this.#saidTaken = this.#taken;
    this.#sendPacket({ kind: "beat", sent: this.#sent, taken: this.#taken });
  }

  #end(): void {
    this.#closing.abort();
    this.#wakeAll();
    this.#wakeReader();
  }

  #wakeAll(): void {
    const senders = [...this.#wakeSenders];
    this.#wakeSenders.clear();
    for (const wake of senders) wake();
  }
}
