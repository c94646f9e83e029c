import { inboxPrefixOf } from "@holdfast/process";
import { createClient } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Cluster } from "../harness/cluster.ts";
import { waitUntil } from "../harness/wait-until.ts";
import { AgentFleet } from "../scenarios/agent-fleet.ts";
import { runCommand } from "../scenarios/holdfast-command.ts";

let cluster: Cluster;
let fleet: AgentFleet;
beforeAll(async () => {
  cluster = await Cluster.start();
  fleet = await AgentFleet.start(cluster, { namespace: "main", leaseTtlMs: 600 });
});
afterAll(async () => {
  await fleet.stop();
  await cluster.stop();
});

describe("a node's process follows its node", () => {
  test("asked by an operator to leave, it gives its partitions away and ends with status 0; its successor does not obey the old request", async () => {
    const [first, second] = await Promise.all([fleet.startNode("node-a"), fleet.startNode("node-b")]);
    const { user, password } = cluster.nats.credentials("operator");
    await using operator = await createClient({
      nats: { servers: [cluster.nats.url], user, password, inboxPrefix: inboxPrefixOf("operator") },
      namespace: "main",
      principal: { kind: "person", id: "local", roles: [] },
    });
    const owners = async (): Promise<readonly (string | undefined)[]> =>
      (await operator.holdfast.read.overview()).partitions.map(({ owner }) => owner);
    await waitUntil(
      "both own some",
      async () => new Set(await owners()).size === 2 && !(await owners()).includes(undefined),
    );
    await expect(operator.holdfast.askToLeave("nobody")).rejects.toMatchObject({ code: "HF-3030" });
    expect(await operator.holdfast.askToLeave("node-a")).toBe(first.hello["incarnation"]);
    expect(await first.exited).toEqual({ code: 0, signal: null });
    await waitUntil("node-b owns all", async () => (await owners()).every((owner) => owner === "node-b"));

    const again = await fleet.startNode("node-a");
    await waitUntil("both own some again", async () => new Set(await owners()).size === 2);
    const env = {
      HOLDFAST_NATS_URL: cluster.nats.url,
      HOLDFAST_NATS_USER: cluster.nats.user,
      HOLDFAST_NATS_PASSWORD: cluster.nats.password,
    };
    const command = await runCommand(["node", "drain", "node-b", "--json"], { env });
    expect(command.json).toMatchObject({ node: "node-b", state: "left" });
    expect(await second.exited).toEqual({ code: 0, signal: null });
    expect(again.child.exitCode).toBeNull();
    const gone = await runCommand(["node", "drain", "node-b", "--json"], { env });
    expect([gone.code, gone.json]).toMatchObject([1, { error: { code: "HF-3030" } }]);
    await again.kill("SIGTERM");
  });

  test("F14: replaced under its own name, it ends with a status that is not 0 and says why", async () => {
    const first = await fleet.startNode("node-c");
    await using client = await fleet.client();
    const holds = (incarnation: unknown) => async (): Promise<boolean> =>
      (await client.holdfast.read.fleet()).leases.every(({ holder }) => holder === incarnation);
    await waitUntil("it owns all", holds(first.hello["incarnation"]));
    first.child.kill("SIGSTOP");
    const second = await fleet.startNode("node-c");
    await waitUntil("the other one owns all", holds(second.hello["incarnation"]));
    first.child.kill("SIGCONT");
    expect(await first.exited).toEqual({ code: 1, signal: null });
    expect(first.log()).toContain("HF-3004: Node node-c: another process took this name");
    expect(second.child.exitCode).toBeNull();
  });
});
