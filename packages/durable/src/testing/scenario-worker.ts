// A process of its own that takes one macrostep.
import { toText } from "./round-trip.ts";
import { scenarioMachines } from "./scenario-machines.ts";
import { dbOf } from "./toy-db.ts";
import { ToyCrash, ToyHost } from "./toy-host.ts";
import type { WorkerReply, WorkerRequest } from "./worker-message.ts";

process.once("message", (request: WorkerRequest) => {
  void answer(request);
});

async function answer(request: WorkerRequest): Promise<void> {
  process.send?.(await work(request));
  process.disconnect();
}

async function work({ db: text, crashAt, task }: WorkerRequest): Promise<WorkerReply> {
  const db = dbOf(text);
  let moved = true;
  try {
    const host = new ToyHost(db, { machines: scenarioMachines, ...(crashAt === undefined ? {} : { crashAt }) });
    switch (task.kind) {
      case "create":
        host.create(task.type, task.input);
        host.processOne();
        break;
      case "send":
        host.send(task.type, task.event);
        host.processOne();
        break;
      case "fire": {
        const due = host.nextTimer(task.endMs);
        moved = due !== undefined;
        db.nowMs = due === undefined ? task.endMs : Math.max(db.nowMs, due.dueAtMs);
        if (due !== undefined) host.fire(due);
        host.processOne();
        break;
      }
      case "step":
        moved = host.processOne();
        break;
      case "settle":
        moved = await host.settleTasks();
    }
    host.die();
  } catch (error) {
    if (!(error instanceof ToyCrash)) throw error;
  }
  return { db: toText(db), moved };
}
