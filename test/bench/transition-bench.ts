// The transition bench: what the whole path of a message reaches of what the store alone can do.
//
// Owns: the order of the windows, the comparison.  Does not own: the loads, the processes, the report line.
//   T1  bare and whole windows take turns, and only ratios of neighbours are compared: the rate of a shared machine moves by a factor of two
//   T2  after every window of the whole path each record is compared with what was answered; a difference ends the run

import { BenchWorld, type DurabilityClass } from "./bench-world.ts";
import { CounterActors } from "./counter-actors.ts";
import { cpuBetween, readCpu, type CpuUse } from "./cpu-use.ts";
import { measureFsyncUs } from "./machine-facts.ts";
import { measureWindow, median, type Window } from "./measure-window.ts";
import { ownWrites, rawWrites, type Load } from "./raw-writes.ts";
import { round, type BenchFindings, type Comparison, type LoadResult } from "./report.ts";
import { ratioName, serialName, type TransitionPlan } from "./transition-plan.ts";

export type TransitionFindings = BenchFindings<LoadResult>;

/** What one turn of the windows showed. */
interface Turn {
  readonly raw: Sample;
  readonly own: Sample;
  readonly whole: Sample;
}

interface Sample {
  readonly window: Window;
  readonly cpu: CpuUse | undefined;
}

/** @throws Error when an answer was not `applied`, or when a record does not count what was answered (T2) */
export async function runTransitionBench(
  plan: TransitionPlan,
  findings: TransitionFindings,
  say: (line: string) => void,
): Promise<void> {
  for (const durabilityClass of plan.classes) {
    await using world = await BenchWorld.start(durabilityClass);
    const fsyncUs = measureFsyncUs(world.folder);
    findings.machine = { ...findings.machine, natsServer: world.nats.version, fsyncUs };
    const actors = await CounterActors.start(world.client.holdfast, Math.max(...plan.concurrencies));
    say(
      `class ${durabilityClass}: nats-server ${world.nats.version}, fsync ${fsyncUs} µs, record ${await actors.recordBytes(world.link)} bytes`,
    );
    const bench = new ClassBench(durabilityClass, world, actors, plan, say);
    await bench.warmUp();
    for (const concurrency of plan.concurrencies) await bench.compare(concurrency, findings);
  }
}

class ClassBench {
  readonly #class: DurabilityClass;
  readonly #world: BenchWorld;
  readonly #actors: CounterActors;
  readonly #plan: TransitionPlan;
  readonly #say: (line: string) => void;

  constructor(
    durabilityClass: DurabilityClass,
    world: BenchWorld,
    actors: CounterActors,
    plan: TransitionPlan,
    say: (line: string) => void,
  ) {
    this.#class = durabilityClass;
    this.#world = world;
    this.#actors = actors;
    this.#plan = plan;
    this.#say = say;
  }

  /** Code that ran a few times only is slower than code that is compiled: both paths run at full load first. */
  async warmUp(): Promise<void> {
    const most = Math.max(...this.#plan.concurrencies);
    await measureWindow(rawWrites(this.#world.link, "warm", this.#actors.shards(most)), this.#plan.warmUpMs);
    await measureWindow(ownWrites(this.#world.link, "warm-own", this.#actors.shards(most)), this.#plan.warmUpMs);
    await measureWindow(this.#actors.sends(most), 2 * this.#plan.warmUpMs);
    await this.#actors.verify(most);
  }

  /** T1. */
  async compare(concurrency: number, { results, reached }: TransitionFindings): Promise<void> {
    const raw = rawWrites(this.#world.link, `c${concurrency}`, this.#actors.shards(concurrency));
    const own = ownWrites(this.#world.link, `o${concurrency}`, this.#actors.shards(concurrency));
    const whole = this.#actors.sends(concurrency);
    await measureWindow(raw, this.#plan.warmUpMs / 2);
    await measureWindow(whole, this.#plan.warmUpMs / 2);
    await measureWindow(own, this.#plan.warmUpMs / 2);
    const turns: Turn[] = [];
    for (let n = 0; n < this.#plan.windows; n += 1) {
      const turn: Turn = {
        own: await this.#measure(own),
        raw: await this.#measure(raw),
        whole: await this.#measure(whole),
      };
      await this.#actors.verify(concurrency); // T2
      turns.push(turn);
      this.#say(`  ${this.#class} ${concurrency}: ${turnLine(turn)}`);
    }
    const overRaw = comparison(turns, "raw");
    const overOwnRaw = comparison(turns, "own");
    const measured = [
      this.#result(`raw-${concurrency}`, turns, "raw"),
      this.#result(`own-raw-${concurrency}`, turns, "own"),
      { ...this.#result(`e2e-${concurrency}`, turns, "whole"), overRaw, overOwnRaw },
    ];
    results.push(...measured);
    if (concurrency === 1) reached.set(serialName(this.#class), overRaw.p50);
    reached.set(ratioName(concurrency, this.#class), overRaw.rate);
    for (const result of measured) this.#say(`${this.#class} ${resultLine(result)}`);
    this.#say(
      `${this.#class} medians of ${turns.length} turns at ${concurrency}: ${comparisonLine("raw", overRaw)}; ` +
        `not judged: ${comparisonLine("own-raw", overOwnRaw)}`,
    );
  }

  async #measure(load: Load): Promise<Sample> {
    const pids = { node: this.#world.node.pid, server: this.#world.nats.pid };
    const before = readCpu(pids);
    const window = await measureWindow(load, this.#plan.windowMs);
    return { window, cpu: cpuBetween(before, readCpu(pids)) };
  }

  #result(name: string, turns: readonly Turn[], kind: keyof Turn): LoadResult {
    const samples = turns.map((turn) => turn[kind]);
    const over = (figure: (window: Window) => number): number =>
      round(median(samples.map(({ window }) => figure(window))));
    const measured = samples.flatMap(({ window, cpu }) => (cpu === undefined ? [] : [{ total: window.total, cpu }]));
    const perOperation = (figure: (cpu: CpuUse) => number): number =>
      Math.round(median(measured.map(({ total, cpu }) => figure(cpu) / total)));
    return {
      name,
      class: this.#class,
      perSecond: over(({ perSecond }) => perSecond),
      p50Ms: over(({ p50Ms }) => p50Ms),
      p99Ms: over(({ p99Ms }) => p99Ms),
      windows: samples.map(({ window }) => Math.round(window.perSecond)),
      ...(measured.length > 0 && {
        cpuUs: {
          client: perOperation(({ clientUs }) => clientUs),
          node: perOperation(({ nodeUs }) => nodeUs),
          server: perOperation(({ serverUs }) => serverUs),
        },
        othersShare: round(median(measured.map(({ cpu }) => cpu.othersShare))),
      }),
    };
  }
}

/** T1: medians of the ratios within a turn, never the ratio of medians. */
function comparison(turns: readonly Turn[], base: "raw" | "own"): Comparison {
  const over = (figure: (window: Window) => number): number =>
    round(median(turns.map((turn) => figure(turn.whole.window) / figure(turn[base].window))));
  return { rate: over(({ perSecond }) => perSecond), p50: over(({ p50Ms }) => p50Ms) };
}

const ms = (value: number): string => `${value.toFixed(2)} ms`;

const windowText = (name: string, { window }: Sample): string =>
  `${name} ${Math.round(window.perSecond)}/s (p50 ${ms(window.p50Ms)})`;

const turnLine = ({ raw, own, whole }: Turn): string =>
  `${windowText("own-raw", own)}, ${windowText("raw", raw)}, ${windowText("e2e", whole)}: ` +
  `${(whole.window.perSecond / raw.window.perSecond).toFixed(2)}x, p50 ${(whole.window.p50Ms / raw.window.p50Ms).toFixed(2)}x`;

const comparisonLine = (base: string, { rate, p50 }: Comparison): string => `over ${base} rate ${rate}x, p50 ${p50}x`;

function resultLine({ name, perSecond, p50Ms, p99Ms, cpuUs, othersShare }: LoadResult): string {
  const cpu =
    cpuUs === undefined
      ? ""
      : `; processor per operation: client ${cpuUs.client} µs, node ${cpuUs.node} µs, server ${cpuUs.server} µs` +
        `; others took ${Math.round((othersShare ?? 0) * 100)} % of the machine`;
  return `${name}: ${perSecond}/s, p50 ${ms(p50Ms)}, p99 ${ms(p99Ms)}${cpu}`;
}
