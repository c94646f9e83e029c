/**
 * One connection between a host and a runner, whatever carries it. Frames are values as JSON has them, in order, none twice; a connection that
 * cannot keep that closes instead.
 */
export interface Connection {
  /** Frames of the other side; ends when the connection closes. */
  readonly frames: AsyncIterable<unknown>;
  /** Aborts when the connection is closed, by whichever side. */
  readonly closed: AbortSignal;
  /** Resolves when the next frame may be sent. Never rejects: what a closed connection is given is lost. */
  send(frame: unknown): Promise<void>;
  close(): void;
}
