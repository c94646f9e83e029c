import { publishStored, purgeBelow, type Link } from "@holdfast/jetstream";
import { parseActorKey, RuntimeFault, type ActorKey } from "@holdfast/protocol";
import type { ErasureOrders } from "@holdfast/runtime/ports";
import type { NamespaceStreams } from "./namespace-streams.ts";

const nothing = new Uint8Array(0);

/** Orders to erase actors, beside their records: one empty value for each. */
export class NatsErasureOrders implements ErasureOrders {
  readonly #link: Link;
  readonly #streams: NamespaceStreams;

  constructor(link: Link, streams: NamespaceStreams) {
    this.#link = link;
    this.#streams = streams;
  }

  /** @throws RuntimeFault HF-4008 when it is not known to be stored, or with the code of the refusal */
  async give(key: ActorKey): Promise<void> {
    const outcome = await publishStored(this.#link, { subject: this.#locate(key).filter, bytes: nothing });
    if (outcome.kind === "accepted") return;
    const code = outcome.kind === "refused" ? outcome.code : "HF-4008";
    throw new RuntimeFault(
      code,
      `${key}: the order to erase it was not stored (${outcome.reason}). It is given again.`,
    );
  }

  async withdraw(key: ActorKey, seq: number): Promise<void> {
    await purgeBelow(this.#link, { ...this.#locate(key), belowSeq: seq + 1 });
  }

  #locate(key: ActorKey): { readonly stream: string; readonly filter: string } {
    const { subjects } = this.#streams;
    const shard = this.#streams.shard(parseActorKey(key).partition);
    return { stream: subjects.actorsStream(shard), filter: subjects.actorSubject(shard, subjects.erasureKey(key)) };
  }
}
