import { Cluster } from "/work/main/test/harness/cluster.ts";
import { AgentFleet } from "/work/main/test/scenarios/agent-fleet.ts";
const cluster = await Cluster.start();
const fleet = await AgentFleet.start(cluster, { namespace: "p1", leaseTtlMs: 600 });
const a = await fleet.startNode("node-a");
await new Promise(r => setTimeout(r, 4000));
const t = Date.now();
await a.kill();
const b = await fleet.startNode("node-b");
console.error("started after", Date.now() - t);
await new Promise(r => setTimeout(r, 5000));
for (const line of b.log().split("\n")) { try { const j = JSON.parse(line); console.error(j.time - t, j.event, j.partition ?? "", j.durationMs ?? "", j.detectMs ?? ""); } catch {} }
await fleet.stop(); await cluster.stop();
