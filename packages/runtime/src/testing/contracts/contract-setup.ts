import {
  formatActorKey,
  RuntimeFault,
  shardOf,
  type ActorKey,
  type PartitionScheme,
  type Principal,
} from "@holdfast/protocol";
import type { CommitOutcome, PublishOutcome } from "../../ports/index.ts";
import type { NodePorts } from "../memory-broker.ts";

/** A fault under way. */
export interface HeldFault {
  /** Resolves when it has hit its request. */
  readonly happened: Promise<void>;
  release(): Promise<void>;
}

/** Faults that an adapter's harness may be able to make. What is missing is skipped, visibly. */
export interface ContractFaults {
  /** Node A's next write is stored; A learns nothing of it, and none of its requests gets through, until `release`. */
  readonly loseNextAck?: () => Promise<HeldFault>;
  /** The bytes of node A's next write arrive at `release`; its later requests get through before. */
  readonly delayNextWrite?: () => Promise<HeldFault>;
  /** Breaks and restores node A's connection. Resolves when it is broken; it comes back by itself. */
  readonly breakConnection?: () => Promise<void>;
  /** Makes the inbox stream of a partition full. @returns undo */
  readonly fillInbox?: (partition: string) => Promise<() => Promise<void>>;
  /** Changes stored bytes of a blob. */
  readonly damageBlob?: (sha256: string) => Promise<void>;
}

/**
 * What a contract works with: two nodes of one fresh namespace, made once per suite.
 * Contracts take partitions of pool `d` as they go: at least 256 of them, in 2 or more shards, and nobody else writes.
 */
export interface ContractSetup {
  readonly a: NodePorts;
  readonly b: NodePorts;
  readonly scheme: PartitionScheme;
  /** Bytes of a stored record that carry `token` as the adapter's `tokenOf` finds it. */
  readonly recordBytes: (token: string, text: string) => Uint8Array;
  /** What a client does: publishes on `hf.<ns>.in.<principal>.<key>`. */
  readonly publishOutside: (
    principal: Pick<Principal, "kind" | "id">,
    key: ActorKey,
    bytes: Uint8Array,
    messageId: string,
  ) => Promise<PublishOutcome>;
  /** Subscribes to a core subject, in force when it resolves. @returns stop */
  readonly listenCore?: (subject: string, deliver: (bytes: Uint8Array) => void) => Promise<() => Promise<void>>;
  /** Subject of an actor's live messages. */
  readonly liveSubject?: (key: ActorKey) => string;
  /** Everything in the events streams, decoded, with its subject. */
  readonly readEvents?: () => Promise<readonly { readonly subject: string; readonly event: unknown }[]>;
  readonly faults?: ContractFaults;
  close(): Promise<void>;
}

export type MakeContractSetup = () => Promise<ContractSetup>;

/** Partitions that no other test of the suite uses. */
export interface FreshPartitions {
  readonly main: string;
  /** Shares the shard, and so the streams, of `main`. */
  readonly sameShard: string;
  /** Shares them too, and nobody ever writes into it. */
  readonly empty: string;
  readonly otherShard: string;
}

const FIRST_FRESH = 20;

/** Hands out partitions of a setup, four at a time. */
export class PartitionAllocator {
  readonly #scheme: PartitionScheme;
  #next = FIRST_FRESH;

  constructor(scheme: PartitionScheme) {
    this.#scheme = scheme;
  }

  /** Two partitions of one shard of which one's name begins with the other's; no others begin so. */
  get namesakes(): { readonly short: string; readonly long: string } {
    const short = "d-1";
    const candidates = Array.from({ length: FIRST_FRESH - 10 }, (_, n) => `d-${n + 10}`);
    const long = candidates.find((name) => shardOf(this.#scheme, name) === shardOf(this.#scheme, short));
    if (long !== undefined) return { short, long };
    throw new RuntimeFault(
      "HF-4005",
      `Contract setup: expected two of d-1 and d-10 to d-19 in one shard, found none among ${this.#scheme.shards} shards. Use fewer shards.`,
    );
  }

  /** @throws RuntimeFault HF-4005 when the pool is too small for the suite */
  take(): FreshPartitions {
    const first = this.#take();
    const shard = shardOf(this.#scheme, first);
    const mates: string[] = [];
    let otherShard: string | undefined;
    while (mates.length < 2 || otherShard === undefined) {
      const candidate = this.#take();
      if (shardOf(this.#scheme, candidate) !== shard) otherShard = candidate;
      else mates.push(candidate);
    }
    return { main: first, sameShard: mates[0] ?? first, empty: mates[1] ?? first, otherShard };
  }

  #take(): string {
    const size = this.#scheme.pools["d"] ?? 0;
    if (this.#next >= size || this.#scheme.shards < 2) {
      throw new RuntimeFault(
        "HF-4005",
        `Contract setup: expected pool "d" with 256 partitions and 2 shards, found ${size} and ${this.#scheme.shards}. Make the namespace so.`,
      );
    }
    this.#next += 1;
    return `d-${this.#next - 1}`;
  }
}

/** Key of a test actor. */
export const keyIn = (partition: string, id: string): ActorKey => formatActorKey({ partition, type: "probe", id });

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
export const textOf = (bytes: Uint8Array | undefined): string | undefined =>
  bytes === undefined ? undefined : new TextDecoder().decode(bytes);

/** The value with its bytes as a bare `Uint8Array`: an adapter may hand out a subclass, which an equality check would tell apart. */
export function plain<T extends { readonly bytes: Uint8Array } | undefined>(value: T): T {
  return value === undefined ? value : { ...value, bytes: new Uint8Array(value.bytes) };
}

/** A signal that ends a test's wait loudly instead of hanging. */
export const soon = (): AbortSignal => AbortSignal.timeout(15_000);

/** Sequence of a message that has to be accepted for the test to make sense. @throws RuntimeFault HF-4004 when it was not */
export async function acceptedSeq(publishing: Promise<PublishOutcome>): Promise<number> {
  const outcome = await publishing;
  if (outcome.kind === "accepted") return outcome.seq;
  throw new RuntimeFault(
    "HF-4004",
    `Arranging the test: expected accepted, got ${outcome.kind}. See ${outcome.reason}.`,
  );
}

/** Sequence of a value that has to be committed for the test to make sense. @throws RuntimeFault HF-4004 when it was not */
export async function committedSeq(committing: Promise<CommitOutcome>): Promise<number> {
  const outcome = await committing;
  if (outcome.kind === "committed") return outcome.seq;
  throw new RuntimeFault("HF-4004", `Arranging the test: expected committed, got ${outcome.kind}. Use a fresh key.`);
}

/** Does `work` over and over beside the test. @returns stop, which resolves when the last round is over */
export function keepDoing(work: (round: number) => Promise<unknown>): () => Promise<void> {
  const running = { goesOn: true };
  const rounds = (async () => {
    for (let round = 0; running.goesOn; round += 1) await work(round);
  })();
  return () => {
    running.goesOn = false;
    return rounds;
  };
}
