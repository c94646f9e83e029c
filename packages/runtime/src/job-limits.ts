/** Which limits one job counts against. */
export interface JobShare {
  /** `<actor type>/<source>`. */
  readonly kind: string;
  readonly type: string;
  readonly provider: string | undefined;
  readonly kindLimit: number;
  readonly typeLimit: number;
}

export interface JobLimitsOptions {
  /** Jobs of the whole node. */
  readonly node: number;
  /** Provider tag → jobs that use it; a tag that is not named has no limit of its own. */
  readonly providers: Readonly<Record<string, number>>;
}

/**
 * How many jobs run at the same time: on the node, of one kind, of one actor type, of one provider.
 *
 * Owns: the counts. Does not own: who waits.
 *   J5 a job starts only while every one of its counts is below its limit
 */
export class JobLimits {
  readonly #options: JobLimitsOptions;
  readonly #running = new Map<string, number>();
  #highest = 0;

  constructor(options: JobLimitsOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running.get(NODE) ?? 0;
  }

  /** Most that ever ran at the same time. */
  get highest(): number {
    return this.#highest;
  }

  isFull(): boolean {
    return this.running >= this.#options.node;
  }

  mayRun(share: JobShare): boolean {
    return this.#countsOf(share).every(([name, limit]) => (this.#running.get(name) ?? 0) < limit);
  }

  entered(share: JobShare): void {
    for (const [name] of this.#countsOf(share)) this.#running.set(name, (this.#running.get(name) ?? 0) + 1);
    this.#highest = Math.max(this.#highest, this.running);
  }

  left(share: JobShare): void {
    for (const [name] of this.#countsOf(share)) this.#running.set(name, (this.#running.get(name) ?? 0) - 1);
  }

  #countsOf({ kind, type, provider, kindLimit, typeLimit }: JobShare): readonly (readonly [string, number])[] {
    const { node, providers } = this.#options;
    const counts: (readonly [string, number])[] = [
      [NODE, node],
      [`kind ${kind}`, kindLimit],
      [`type ${type}`, typeLimit],
    ];
    if (provider !== undefined) counts.push([`provider ${provider}`, providers[provider] ?? Number.POSITIVE_INFINITY]);
    return counts;
  }
}

const NODE = "node";
