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
    // By key: what is written while it is read is delivered again.
    const actors = new Map<string, AuditedActor>();
    const steps: AuditedStep[] = [];
    for (const stream of names) {
      if (stream.startsWith(`KV_hf_${ns}_actors_`)) {
        await readAll(js, jsm, stream, (subject, bytes) => {
          if (bytes.length === 0 || /\._(claim|checkpoint)$/.test(subject)) return;
          actors.set(subject, AuditedActor.parse(readFramePayload(bytes)));
        });
      } else if (stream.startsWith(`HF_${ns.toUpperCase()}_JOURNAL_`)) {
        await readAll(js, jsm, stream, (_subject, bytes) => {
          const batch = readPlain(bytes);
          if (Array.isArray(batch)) for (const entry of batch) steps.push(AuditedStep.parse(entry));
        });
      }
    }
    return { actors: [...actors.values()], ...orderSteps(steps) };
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
  let lastSeq = state.last_seq;
  const consumer = await js.consumers.get(stream);
  const messages = await consumer.consume({ idle_heartbeat: 1000, expires: 5000 });
  for await (const message of messages) {
    take(message.subject, message.data);
    if (message.seq < lastSeq) continue;
    // A bucket keeps one value per key: a record written meanwhile has moved behind the end that was known.
    lastSeq = (await jsm.streams.info(stream)).state.last_seq;
    if (message.seq >= lastSeq) break;
  }
  await messages.close();
}
