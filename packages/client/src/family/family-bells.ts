import { OrderedReader, type Link } from "@holdfast/jetstream";
import { parseActorKey, type RuntimeFault } from "@holdfast/protocol";

export interface FamilyBellsOptions {
  readonly link: Link;
  readonly streamOf: (partition: string) => string;
  readonly subjectOf: (key: string) => string;
}

interface Bell {
  readonly keys: string;
  readonly reader: OrderedReader;
}

/** Tells which of some journals have grown. One reader per stream, of headers alone. */
export class FamilyBells implements AsyncDisposable {
  readonly #options: FamilyBellsOptions;
  readonly #bells = new Map<string, Bell>();
  /** Key → highest sequence that was heard of, also while nobody waited. */
  readonly #heard = new Map<string, number>();
  #news = new AbortController();
  #fault: RuntimeFault | undefined;

  constructor(options: FamilyBellsOptions) {
    this.#options = options;
  }

  /**
   * Waits until one of the journals has a message behind what was seen of it.
   *
   * @param seen  key → sequence of the last message that was read
   * @returns keys of those that have; empty when `signal` aborted or the link was closed
   * @throws RuntimeFault as OrderedReader reports them
   */
  async wait(seen: ReadonlyMap<string, number>, signal: AbortSignal): Promise<readonly string[]> {
    await this.#hang(seen);
    const ends = AbortSignal.any([signal, this.#options.link.closed]);
    for (;;) {
      if (this.#fault !== undefined) throw this.#fault;
      const grown = [...seen].filter(([key, seq]) => (this.#heard.get(key) ?? 0) > seq).map(([key]) => key);
      if (grown.length > 0 || ends.aborted) return ends.aborted ? [] : grown;
      this.#news = new AbortController();
      await aborted(AbortSignal.any([ends, this.#news.signal]));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#bells.values()].map(({ reader }) => reader.stop()));
  }

  /** A stream whose journals are other ones now gets another reader. */
  async #hang(seen: ReadonlyMap<string, number>): Promise<void> {
    const { link, streamOf, subjectOf } = this.#options;
    const byStream = Map.groupBy(seen.keys(), (key) => streamOf(parseActorKey(key).partition));
    for (const [stream, { reader }] of this.#bells) {
      if (byStream.has(stream)) continue;
      this.#bells.delete(stream);
      await reader.stop();
    }
    for (const [stream, members] of byStream) {
      const keys = members.toSorted().join(" ");
      const known = this.#bells.get(stream);
      if (known?.keys === keys) continue;
      await known?.reader.stop();
      const keyOf = new Map(members.map((key) => [subjectOf(key), key]));
      const reader = await OrderedReader.start(link, {
        stream,
        filters: [...keyOf.keys()],
        fromSeq: Math.min(...members.map((key) => seen.get(key) ?? 0)) + 1,
        headersOnly: true,
        deliver: ({ subject, seq }) => {
          this.#heard.set(keyOf.get(subject) ?? "", seq);
          this.#news.abort();
        },
        onFault: (fault) => {
          this.#fault = fault;
          this.#news.abort();
        },
      });
      this.#bells.set(stream, { keys, reader });
    }
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
