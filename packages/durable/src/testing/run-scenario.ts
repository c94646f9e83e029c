import type { ActorRecord } from "@holdfast/protocol";
import { deepFreeze } from "./deep-freeze.ts";
import { roundTrip } from "./round-trip.ts";
import { scenarioMachines } from "./scenario-machines.ts";
import type { Scenario } from "./scenarios.ts";
import { emptyDb, type ToyDb } from "./toy-db.ts";
import { ToyCrash, ToyHost, type CrashPoint } from "./toy-host.ts";
import { viewOfRoot } from "./views.ts";

export interface RunOptions {
  /** Records go through text after every commit, so every step starts cold. */
  readonly cold?: boolean;
  readonly crashAt?: CrashPoint;
  readonly copies?: number;
  readonly swaps?: boolean;
  /** Called after each operation, before its view is taken. */
  readonly disturb?: (host: ToyHost) => Promise<void>;
}

export interface ScenarioRun {
  readonly views: readonly string[];
  readonly db: ToyDb;
  readonly crashes: number;
}

/** Runs a scenario in this process, restarting the host whenever it crashes. Stored records are frozen. */
export async function runScenario(scenario: Scenario, options: RunOptions = {}): Promise<ScenarioRun> {
  const { name, input, operations } = scenario;
  const store = (record: ActorRecord): ActorRecord => deepFreeze(options.cold === true ? roundTrip(record) : record);
  const { crashAt, copies = 1, swaps = false } = options;
  let db = emptyDb();
  let crashes = 0;
  const open = (): ToyHost => {
    for (;;) {
      try {
        return new ToyHost(db, {
          machines: scenarioMachines,
          store,
          copies,
          swaps,
          ...(crashAt === undefined ? {} : { crashAt }),
        });
      } catch (error) {
        if (!(error instanceof ToyCrash)) throw error;
        crashes += 1;
        db = reborn(db);
      }
    }
  };
  let host = open();
  const untilDone = async (work: (host: ToyHost) => Promise<void>): Promise<void> => {
    for (;;) {
      try {
        return await work(host);
      } catch (error) {
        if (!(error instanceof ToyCrash)) throw error;
        crashes += 1;
        host.die();
        db = reborn(db);
        host = open();
      }
    }
  };

  host.create(name, input);
  await untilDone((current) => current.drain());
  const views: string[] = [];
  for (const operation of operations) {
    if ("send" in operation) {
      host.send(name, operation.send);
      await untilDone((current) => current.drain());
    } else {
      const endMs = db.nowMs + operation.advanceMs;
      await untilDone(async (current) => {
        await current.drain();
        await current.advance(endMs - current.db.nowMs);
      });
    }
    if (options.disturb !== undefined) await options.disturb(host);
    views.push(viewOfRoot(name, host.db));
  }
  host.die();
  return { views, db: host.db, crashes };
}

/** The db as a new process finds it: nothing in it is the same object as before. */
const reborn = (db: ToyDb): ToyDb => roundTrip(db);
