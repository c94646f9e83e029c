// The wallet bench: how many reservations a second wallets make, each of them settled.
//
// Owns: the order of the windows, the comparison.  Does not own: the loads, the processes, the report line.
//   B1  windows of one actor, one wallet and many wallets take turns, and only ratios of neighbours are compared
//   B2  after every window each wallet is compared with what was answered: none lost, none twice; a difference ends the run

import { WalletTeller, type HoldfastClient } from "@holdfast/client";
import { FLEET_PRINCIPAL } from "@holdfast/protocol";
import { createClient } from "holdfast";
import { randomBytes } from "node:crypto";
import { BenchWorld, NAMESPACE } from "./bench-world.ts";
import { CounterActors } from "./counter-actors.ts";
import { measureFsyncUs } from "./machine-facts.ts";
import { measureWindow, median, type Window } from "./measure-window.ts";
import { round, type BenchFindings, type LoadResult } from "./report.ts";
import { ALL_ROOTS, ONE_WALLET, type WalletPlan } from "./wallet-plan.ts";

const MOST = { microUsd: 100, tokens: 100 };
const COST = { microUsd: 7, tokens: 9 };

type Load = readonly (() => Promise<void>)[];

/** @throws Error when a reservation is refused, or when a wallet does not say what was answered (B2) */
export async function runWalletBench(
  plan: WalletPlan,
  findings: BenchFindings<LoadResult>,
  say: (line: string) => void,
): Promise<void> {
  await using world = await BenchWorld.start(plan.durabilityClass);
  const fsyncUs = measureFsyncUs(world.folder);
  findings.machine = { ...findings.machine, natsServer: world.nats.version, fsyncUs };
  const nats = { servers: [world.nats.url], user: world.nats.user, password: world.nats.password };
  await using fleet = await createClient({ nats, namespace: NAMESPACE, principal: FLEET_PRINCIPAL });
  const purses = await Purses.open(world.client.holdfast, fleet.holdfast, plan);
  const counters = await CounterActors.start(world.client.holdfast, 1);
  const [oneCounter = () => Promise.resolve()] = counters.sends(1);
  const loads: Readonly<Record<string, Load>> = {
    // As many senders as there are callers: what one actor can take is asked, not what one sender can.
    counter: Array.from({ length: plan.callers }, () => oneCounter),
    "one-root": purses.calls(1),
    "all-roots": purses.calls(plan.roots),
  };
  for (const load of Object.values(loads)) await measureWindow(load, plan.warmUpMs);
  const windows: Record<string, Window[]> = {};
  for (let n = 0; n < plan.windows; n += 1) {
    for (const [name, load] of Object.entries(loads)) {
      const window = await measureWindow(load, plan.windowMs);
      (windows[name] ??= []).push(window);
      say(
        `  ${name}: ${window.perSecond.toFixed(0)}/s, p50 ${window.p50Ms.toFixed(1)} ms, p99 ${window.p99Ms.toFixed(1)} ms`,
      );
    }
    await counters.verify(1);
    await purses.verify(); // B2
  }
  for (const [name, measured] of Object.entries(windows))
    findings.results.push(resultOf(`${name}-${plan.callers}`, plan, measured));
  const ratios = (over: string, under: string): number =>
    median((windows[over] ?? []).map(({ perSecond }, n) => perSecond / (windows[under]?.[n]?.perSecond ?? Number.NaN))); // B1
  findings.reached.set(ONE_WALLET, 2 * ratios("one-root", "counter")); // a reservation is two messages
  findings.reached.set(ALL_ROOTS, ratios("all-roots", "one-root"));
}

/** Wallets of a few roots below one for all, and what was spent from each. */
class Purses {
  readonly #owner: HoldfastClient;
  readonly #teller: WalletTeller;
  readonly #roots: readonly string[];
  readonly #callers: number;
  readonly #settled = new Map<string, number>();
  #jobs = 0;

  private constructor(owner: HoldfastClient, fleet: HoldfastClient, { callers }: WalletPlan, roots: readonly string[]) {
    this.#owner = owner;
    this.#teller = new WalletTeller(fleet, (bytes) => randomBytes(bytes).toString("hex"));
    this.#roots = roots;
    this.#callers = callers;
  }

  static async open(owner: HoldfastClient, fleet: HoldfastClient, plan: WalletPlan): Promise<Purses> {
    const roots = Array.from({ length: plan.roots }, (_, n) => `root-${n}`);
    await owner.wallets.set("global", { microUsd: 1_000_000_000_000 });
    for (const root of roots) await owner.wallets.set(root, { microUsd: 100_000_000_000 });
    return new Purses(owner, fleet, plan, roots);
  }

  /** One operation per caller, spread over so many roots: money is reserved, and settled. */
  calls(roots: number): Load {
    return Array.from({ length: this.#callers }, (_, caller) => async () => {
      const wallet = this.#roots[caller % roots] ?? "";
      this.#jobs += 1;
      const { signal } = new AbortController();
      const request = { payer: { wallet }, job: `job-${this.#jobs}`, estimate: MOST, maximum: MOST, signal };
      const held = await this.#teller.reserve(request);
      await held.settle(COST, 6500.5);
      this.#settled.set(wallet, (this.#settled.get(wallet) ?? 0) + 1);
    });
  }

  async verify(): Promise<void> {
    for (const root of this.#roots) {
      const { settled, open, unresolved } = (await this.#owner.wallets.get(root)).state;
      const calls = this.#settled.get(root) ?? 0;
      const left = Object.keys(open).length + Object.keys(unresolved).length;
      if (settled.calls === calls && settled.microUsd === calls * COST.microUsd && left === 0) continue;
      throw new Error(`wallet ${root}: ${calls} calls were settled, it says ${JSON.stringify({ settled, left })}`);
    }
  }
}

function resultOf(name: string, { durabilityClass }: WalletPlan, windows: readonly Window[]): LoadResult {
  return {
    name,
    class: durabilityClass,
    perSecond: round(median(windows.map(({ perSecond }) => perSecond))),
    p50Ms: round(median(windows.map(({ p50Ms }) => p50Ms))),
    p99Ms: round(median(windows.map(({ p99Ms }) => p99Ms))),
    windows: windows.map(({ perSecond }) => round(perSecond)),
  };
}
