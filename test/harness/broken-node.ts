import { NamespaceReader } from "@holdfast/client";
import { createCodec } from "@holdfast/codec";
import { actorRefExtension } from "@holdfast/durable";
import { connectNats, ensureNamespace } from "@holdfast/jetstream";
import { composeNatsPorts } from "@holdfast/nats";
import { createSystemRandom, systemClock, systemCrc32 } from "@holdfast/process";
import { DEFAULT_POOL, subjectsOf } from "@holdfast/protocol";
import { RuntimeNode } from "@holdfast/runtime";
import { noCrashPoints, silentTelemetry } from "@holdfast/runtime/ports";
import type { Node, StartNodeOptions } from "holdfast";
import { PLANTED_BREAKS, type PlantedBreak } from "./planted-breaks.ts";

/** Starts a node as `startNode` does, but with a fault planted between it and what it is given. */
export async function startBrokenNode(options: StartNodeOptions, planted: PlantedBreak): Promise<Node> {
  const random = createSystemRandom();
  const name = options.name ?? `n-${random.hex(4)}`;
  const telemetry = options.telemetry ?? silentTelemetry;
  const { servers, user, password, inboxPrefix } = options.nats;
  const link = await connectNats({ servers, user, pass: password, inboxPrefix, name: `holdfast-broken-node-${name}` });
  const namespace = await ensureNamespace(link, {
    ns: options.namespace,
    newGeneration: () => random.hex(4),
    ...options.layout,
    replicas: options.replicas,
  });
  const codec = createCodec({ ref: actorRefExtension, crc32: systemCrc32 });
  const ports = composeNatsPorts(link, namespace, {
    tokenOf: (bytes) => {
      try {
        return codec.decodeHeader(bytes).token;
      } catch {
        return undefined; // nobody's
      }
    },
    onFault: (fault) => telemetry.error("nats.reader-stopped", { code: fault.code, reason: fault.message }),
    onUnreadable: (message) => telemetry.error("nats.unreadable", { ...message }),
  });
  const { manifest } = namespace;
  const read = new NamespaceReader({ link, codec, subjects: subjectsOf(options.namespace), manifest });
  const context = { link, codec, manifest, read };
  const seams = PLANTED_BREAKS[planted]({ codec, records: ports.records, fleet: ports.fleet });
  const runtime = new RuntimeNode({
    name,
    definitions: typeof options.definitions === "function" ? options.definitions(context) : options.definitions,
    pools: options.pools ?? [DEFAULT_POOL],
    scheme: manifest,
    codec: seams.codec,
    ports: { ...ports, records: seams.records, fleet: seams.fleet },
    clock: systemClock,
    random,
    telemetry,
    crashPoints: options.crashPoints ?? noCrashPoints,
    ...(options.settings !== undefined && { settings: options.settings }),
  });
  await runtime.start();
  const leave = async (how: () => Promise<void>): Promise<void> => {
    await how();
    await link.close();
  };
  return {
    name,
    incarnation: runtime.incarnation,
    runtime,
    context,
    ending: runtime.ending,
    drain: () => leave(() => runtime.drain()),
    stop: () => leave(() => runtime.stop()),
  };
}
