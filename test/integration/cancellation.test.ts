import { defineAgent, withDelegates } from "@holdfast/agents";
import type { HoldfastClient } from "@holdfast/client";
import type { Client } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { StartedProcess } from "../harness/child-process.ts";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";

// A cancel is a stored message: it outlives every process. What it does to a task is tested in packages/machines.

const price = { inputMicroUsd: 1_000_000, outputMicroUsd: 1_000_000 };
const limits = { maxOutputTokens: 100 };
const blocker = defineAgent({ name: "blocker", model: "blocker", limits, prices: { blocker: price } });
const boss = defineAgent({ name: "chief", model: "puppet", limits, prices: { puppet: price } });
const chief = withDelegates(boss, [blocker], {});

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster.stop());

/** Every outcome of a task that a conversation has applied, by call. */
async function outcomes(holdfast: HoldfastClient, id: string): Promise<readonly (readonly [string, unknown])[]> {
  const entries = await holdfast.read.journal(holdfast.key("conversation", id));
  return entries.flatMap(({ event }) => {
    const output = event["output"];
    const isTask = typeof output === "object" && output !== null && "taskId" in output && "status" in output;
    return isTask ? [[event.type.replace("xstate.done.actor.", ""), output.status] as const] : [];
  });
}

test("a cancel that nobody was alive to read ends its task once, and the money of its call is told; work that was done meanwhile counts", async () => {
  const namespace = "cancels";
  const fleet = await AgentFleet.start(cluster, { namespace, leaseTtlMs: 600 });
  let client: Client | undefined;
  try {
    let node: StartedProcess = await fleet.startNode("node-0");
    client = await fleet.client();
    const { holdfast } = client;
    await holdfast.wallets.set("w1", { microUsd: 100_000 });
    const calls = ["lost", "done", "kept"].map((prompt) => ({
      name: "task",
      arguments: { subagent: "blocker", prompt, description: prompt },
    }));
    const input = { agent: chief, agents: { blocker }, prompt: JSON.stringify([calls]), budget: { wallet: "w1" } };
    await holdfast.conversations.start("c1", input);
    await fleet.model.wait({ model: "blocker", state: "blocked", count: 3 });
    const tasks = async () =>
      (await holdfast.read.headers("task")).map(({ key, list }) => ({
        key,
        title: list["title"],
        status: list["status"],
      }));
    const keyOf = async (title: string) => (await tasks()).find((one) => one.title === title)?.key ?? "";
    const [lost, done] = [await keyOf("lost"), await keyOf("done")];
    const begun = Object.keys((await holdfast.wallets.get("w1")).state.open);

    process.kill(node.pid, "SIGKILL");
    await node.exited;
    // Twice, since its sender has no answer: it counts once.
    for (const key of [lost, done, lost])
      expect(await holdfast.send(key, { type: "cancel", reason: "enough" }, { timeoutMs: 300 })).toEqual({
        kind: "accepted",
      });
    await fleet.model.release("done");
    node = await fleet.startNode("node-1");

    const ended = (title: string, ends: readonly string[]) =>
      waitUntil(
        `task ${title} has ended`,
        async () => {
          const status = (await tasks()).find((one) => one.title === title)?.status;
          return typeof status === "string" && ends.includes(status) ? status : undefined;
        },
        { timeoutMs: 20_000, dump: () => fleet.logs().slice(-4000) },
      );
    expect(await ended("lost", ["cancelled", "completed", "failed"])).toBe("cancelled");
    const how = await ended("done", ["cancelled", "completed", "failed"]);
    expect(how).toMatch(/^(cancelled|completed)$/);
    expect((await tasks()).find(({ title }) => title === "kept")?.status).toBe("running");
    await fleet.model.release("kept");
    await waitUntil("c1 rests", async () => {
      const header = await holdfast.read.header(holdfast.key("conversation", "c1"));
      return header?.list["status"] === "idle";
    });

    // One outcome for each call, and the same that the task itself says.
    const told = await outcomes(holdfast, "c1");
    expect(new Set(told.map(([call]) => call)).size).toBe(3);
    expect(told.map(([, status]) => String(status)).toSorted()).toEqual(["cancelled", how, "completed"].toSorted());
    const answer = await holdfast.conversations.finalAnswer("c1");
    expect(answer?.text.match(/result of kept/g)).toHaveLength(1);
    expect(answer?.text).not.toContain("result of lost");

    // A call that was begun again before its conversation heard of the end is stopped, and nothing stays held unseen.
    const again = (await fleet.model.requests()).filter(({ lastUser }) => lastUser === "lost");
    expect(again.length).toBeLessThanOrEqual(2);
    expect(again.every(({ answered }) => !answered)).toBe(true);
    // What is still open was begun by the process that was killed, and was not begun again: the wallet gives it up after half an hour.
    const held = await waitUntil("no call holds money that could have told its end", async () => {
      const { open, unresolved } = (await holdfast.wallets.get("w1")).state;
      const isOver = Object.keys(open).every((id) => begun.includes(id));
      return isOver ? [...Object.keys(open), ...Object.keys(unresolved)] : undefined;
    });
    expect(held.filter((id) => begun.includes(id))).toHaveLength(3);
  } finally {
    await client?.close();
    await fleet.stop();
  }
});
