import { randomBytes } from "node:crypto";
import type { Link } from "@holdfast/jetstream";
import { connectToRunner, RunnerFrame, RunnerReader, type Connection, type RunnerEnvelope } from "@holdfast/runner";
import { readingAs, type MemoryFacts } from "@holdfast/runner/testing";

/** Hosts of one seat, over one connection to NATS. */
export interface SeatHosts {
  /** Sends one opening over a connection of its own. @returns the first frame that comes back */
  answerTo(opening: object): Promise<RunnerFrame>;
  /** A host that attaches again whenever its connection ends, until `signal` says that it is enough. A gap is a failure. */
  host(facts: MemoryFacts, epoch: number, signal: AbortSignal): ReadingHost;
}

export interface ReadingHost {
  readonly envelopes: readonly RunnerEnvelope[];
  /** Rejects with whatever ended it before `signal`. */
  readonly ended: Promise<void>;
  connections(): number;
}

export function seatHosts(link: Link, ns: string, seat: string): SeatHosts {
  const connect = (): Connection => connectToRunner({ link, ns, seat }, randomBytes(8).toString("hex"));
  return {
    answerTo: async (opening) => {
      const connection = connect();
      await connection.send(opening);
      for await (const frame of connection.frames) return RunnerFrame.parse(frame);
      throw new Error("the runner closed without a word");
    },
    host: (facts, epoch, signal) => {
      const envelopes: RunnerEnvelope[] = [];
      let connections = 0;
      const reader = new RunnerReader({
        opening: readingAs(epoch, `node-${epoch}:00000000`),
        facts,
        onEnvelope: (envelope) => envelopes.push(envelope),
        onGap: () => {
          throw new Error("a gap");
        },
      });
      const ended = (async () => {
        while (!signal.aborted) {
          connections += 1;
          const connection = connect();
          signal.addEventListener("abort", () => connection.close());
          await reader.read(connection);
        }
      })();
      ended.catch(() => undefined);
      return { envelopes, ended, connections: () => connections };
    },
  };
}
