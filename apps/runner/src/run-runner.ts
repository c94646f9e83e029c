import { randomBytes } from "node:crypto";
import { connectNats } from "@holdfast/jetstream";
import { inboxPrefixOf, untilSignalled } from "@holdfast/process";
import { listenForHosts, RunnerJournal, RunnerSeat } from "@holdfast/runner";
import { EngineProcess } from "./engine-process.ts";
import type { Settings } from "./settings.ts";

/**
 * Serves one seat until a signal. Prints one line of JSON when hosts can connect.
 *
 * @throws RuntimeFault when the journal cannot be read or written, or NATS refuses the user of the seat
 */
export async function runRunner(settings: Settings): Promise<void> {
  const journal = await RunnerJournal.open({
    folder: settings.RUNNER_FOLDER,
    drawToken: () => randomBytes(8).toString("hex"),
  });
  const engine = new EngineProcess({ command: settings.RUNNER_ENGINE, contract: settings.RUNNER_CONTRACT, journal });
  const seat = await RunnerSeat.open({ journal, engine, tokenFile: settings.RUNNER_TOKEN_FILE });
  const user = `runner_${settings.RUNNER_SEAT}` as const;
  const link = await connectNats({
    servers: [settings.RUNNER_NATS_URL],
    name: `holdfast runner ${settings.RUNNER_SEAT}`,
    user,
    pass: settings.RUNNER_NATS_PASSWORD,
    inboxPrefix: inboxPrefixOf(user),
  });
  const stop = listenForHosts(
    { link, ns: settings.RUNNER_NAMESPACE, seat: settings.RUNNER_SEAT },
    (connection) => void seat.serve(connection),
  );
  await link.nc.flush();
  const { first } = untilSignalled();
  process.stdout.write(`${JSON.stringify({ seat: settings.RUNNER_SEAT, epoch: journal.epoch })}\n`);
  await first;
  stop();
  engine.stop();
  await link.close();
  await journal.close();
}
