import { jetstreamManager, jetstream, type JetStreamClient, type JetStreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { AuditedActor, AuditedStep, orderSteps, type Evidence } from "./evidence.ts";
import { readFramePayload, readPlain } from "./plain-values.ts";

export interface ReadEvidenceOptions {
  readonly servers: readonly string[];
  readonly user: string;
  readonly password: string;
  readonly inboxPrefix: string;
  readonly namespace: string;
}

/** Reads every record and every journal entry that is stored now. */
export async function readEvidence(options: ReadEvidenceOptions): Promise<Evidence> {
  const nc = await connect({
    servers: [...options.servers],
    user: options.user,
    pass: options.password,
    inboxPrefix: options.inboxPrefix,
    name: "holdfast-audit",
    noAsyncTraces: true,
  });
  try {
    const js = jetstream(nc);
    const jsm = await jetstreamManager(nc);
    const names = await jsm.streams.names().next();
    const ns = options.namespace;
    const actors: AuditedActor[] = [];
    const steps: AuditedStep[] = [];
    for (const stream of names) {
      if (stream.startsWith(`KV_hf_${ns}_actors_`)) {
        await readAll(js, jsm, stream, (subject, bytes) => {
          if (bytes.length === 0 || /\._(claim|checkpoint)$/.test(subject)) return;
          actors.push(AuditedActor.parse(readFramePayload(bytes)));
        });
      } else if (stream.startsWith(`HF_${ns.toUpperCase()}_JOURNAL_`)) {
        await readAll(js, jsm, stream, (_subject, bytes) => {
          const batch = readPlain(bytes);
          if (Array.isArray(batch)) for (const entry of batch) steps.push(AuditedStep.parse(entry));
        });
      }
    }
    return { actors, ...orderSteps(steps) };
  } finally {
    await nc.close();
  }
}

async function readAll(
  js: JetStreamClient,
  jsm: JetStreamManager,
  stream: string,
  take: (subject: string, bytes: Uint8Array) => void,
): Promise<void> {
  const { state } = await jsm.streams.info(stream);
  if (state.messages === 0) return;
  const consumer = await js.consumers.get(stream);
  const messages = await consumer.consume({ idle_heartbeat: 1000, expires: 5000 });
  for await (const message of messages) {
    take(message.subject, message.data);
    if (message.seq >= state.last_seq) break;
  }
  await messages.close();
}
