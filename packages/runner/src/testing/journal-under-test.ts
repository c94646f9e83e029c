// A process that does nothing but write a journal, and says what it may send: one line per envelope, after the write returned.
// Arguments: folder, number of envelopes, and optionally the size of the file at which it is killed in the middle of a write.

import { writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { RunnerJournal } from "../journal/runner-journal.ts";
import { draftOf } from "./seeded-drafts.ts";

const [folder = "", count = "0", dieAtBytes] = process.argv.slice(2);

if (dieAtBytes !== undefined) await dieInWrite(Number(dieAtBytes));
const journal = await RunnerJournal.open({ folder, drawToken: () => "childchildchild1" });
if (journal.conversation === undefined) await journal.bind("c1");
writeSync(1, `epoch ${journal.epoch}\n`);
for (let index = 0; index < Number(count); index += 1) {
  const outcome = await journal.append(draftOf(journal.lastSeq + 1));
  if (outcome.kind === "appended") writeSync(1, `sent ${outcome.envelopes[0]?.seq}\n`);
}
await journal.close();

/** From here on a write that reaches this size of the file is made up to it, and then the process gets SIGKILL. */
async function dieInWrite(size: number): Promise<void> {
  const probe = await open(process.execPath, "r");
  const prototype: { write: (bytes: Buffer, offset: number, length: number, at: number) => Promise<unknown> } =
    Object.getPrototypeOf(probe);
  await probe.close();
  const write = prototype.write;
  const dying = async function (this: unknown, bytes: Buffer, offset: number, length: number, at: number) {
    if (at + length <= size) return write.call(this, bytes, offset, length, at);
    await write.call(this, bytes, offset, Math.max(0, size - at), at);
    process.kill(process.pid, "SIGKILL");
    return new Promise<never>(() => undefined);
  };
  Object.assign(prototype, { write: dying });
}
