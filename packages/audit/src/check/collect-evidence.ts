import { readFrame, readPlain } from "../plain-values.ts";
import { StoredStreams, type ReadEvidenceOptions, type StoredMessage } from "../stored-streams.ts";
import { BlobCollector } from "./blob-collector.ts";
import type { AcceptedCommand } from "./accepted-command.ts";
import {
  CheckedHeader,
  CheckedLease,
  CheckedRecord,
  type CheckedActor,
  type CheckedMessage,
  type CheckEvidence,
} from "./check-evidence.ts";
import { CheckedEntry, type JournalMessage } from "./journal-message.ts";

export interface CollectOptions extends ReadEvidenceOptions {
  /** What clients were told. */
  readonly accepted: readonly AcceptedCommand[];
  /** Lines of the ledger's log; undefined when no ledger took part. */
  readonly ledger?: readonly string[];
  /** How often it is read again when something was written meanwhile; default 20. */
  readonly tries?: number;
}

/** Streams of one namespace, by what is in them. */
interface Layout {
  readonly actors: readonly string[];
  readonly journal: readonly string[];
  readonly inbox: readonly string[];
  readonly parked: readonly string[];
  readonly fleet: string;
  readonly blobs: string;
}

/**
 * Reads everything of a namespace that is judged, at one moment: what was written while it was read makes it start again.
 * @throws Error when it never stands still
 */
export const collectEvidence = (options: CollectOptions): Promise<CheckEvidence> =>
  StoredStreams.with(options, async (streams) => {
    const layout = layoutOf(options.namespace, streams.names);
    for (let left = options.tries ?? 20; left > 0; left -= 1) {
      const before = await positions(streams, layout);
      const evidence = await readOnce(streams, layout, options);
      if ((await positions(streams, layout)) === before) return evidence;
    }
    throw new Error(`Namespace ${options.namespace}: it does not come to rest. Stop what sends to it, and judge then.`);
  });

function layoutOf(ns: string, names: readonly string[]): Layout {
  const below = (prefix: string): readonly string[] => names.filter((name) => name.startsWith(prefix)).toSorted();
  const upper = ns.toUpperCase();
  return {
    actors: below(`KV_hf_${ns}_actors_`),
    journal: below(`HF_${upper}_JOURNAL_`),
    inbox: below(`HF_${upper}_INBOX_`),
    parked: below(`HF_${upper}_PARKED_`),
    fleet: `KV_hf_${ns}_fleet`,
    blobs: `OBJ_hf_${ns}_blobs`,
  };
}

/** Heartbeats go on at rest, and say nothing that is judged. */
async function positions(streams: StoredStreams, { actors, journal, inbox, parked }: Layout): Promise<string> {
  const found: string[] = [];
  for (const stream of [...actors, ...journal, ...inbox, ...parked])
    found.push(`${stream} ${(await streams.position(stream)).lastSeq}`);
  return found.join("\n");
}

async function readOnce(
  streams: StoredStreams,
  layout: Layout,
  { namespace, accepted, ledger }: CollectOptions,
): Promise<CheckEvidence> {
  const unreadable: { where: string; why: string }[] = [];
  const attempt = (stream: string, { seq }: StoredMessage, read: () => void): void => {
    try {
      read();
    } catch (error) {
      unreadable.push({ where: `${stream} ${seq}`, why: error instanceof Error ? error.message : "unreadable" });
    }
  };
  const readEach = async (names: readonly string[], take: (stream: string, message: StoredMessage) => void) => {
    for (const stream of names)
      await streams.read(stream, (message) => attempt(stream, message, () => take(stream, message)));
  };
  // By key: what is written while it is read is delivered again.
  const actors = new Map<string, CheckedActor>();
  const leases = new Map<string, CheckedLease>();
  const journal: JournalMessage[] = [];
  const messages: CheckedMessage[] = [];
  await readEach(layout.actors, (_stream, message) => {
    if (message.bytes.length > 0 && !/\._(claim|checkpoint)$/.test(message.subject))
      actors.set(message.subject, actorOf(message));
  });
  await readEach(layout.journal, (stream, message) => journal.push(journalMessageOf(namespace, stream, message)));
  await readEach([...layout.inbox, ...layout.parked], (stream, message) => {
    const found = inboxMessageOf(namespace, stream, message);
    if (found !== undefined) messages.push(found);
  });
  await readEach([layout.fleet], (_stream, { subject, bytes }) => {
    if (!subject.includes(`_fleet.lease.`) || bytes.length === 0) return;
    leases.set(subject, CheckedLease.parse(JSON.parse(new TextDecoder().decode(bytes))));
  });
  const blobs = new BlobCollector();
  if (streams.names.includes(layout.blobs))
    await readEach([layout.blobs], (_stream, message) => blobs.take(message.subject, message.bytes));
  const { atMs } = await streams.position(layout.fleet);
  return {
    atMs,
    actors: [...actors.values()],
    journal,
    messages,
    leases: [...leases.values()],
    accepted,
    ledger,
    blobs: blobs.collected(),
    unreadable,
  };
}

function actorOf({ bytes }: StoredMessage): CheckedActor {
  const { header, payload } = readFrame(bytes);
  return { header: CheckedHeader.parse(header), record: CheckedRecord.parse(payload), bytes };
}

function journalMessageOf(ns: string, stream: string, { subject, seq, bytes }: StoredMessage): JournalMessage {
  const batch = readPlain(bytes);
  const entries = (Array.isArray(batch) ? batch : []).map((entry) => CheckedEntry.parse(entry));
  return { stream, seq, key: subject.slice(`hf.${ns}.journal.`.length), entries, bytes };
}

/** @returns undefined for a subject that no message to an actor has */
function inboxMessageOf(ns: string, stream: string, message: StoredMessage): CheckedMessage | undefined {
  const [, space, lane, ...rest] = message.subject.split(".");
  if (space !== ns) return undefined;
  const { seq, storedAtMs, messageId } = message;
  const common = { stream, seq, storedAtMs, messageId };
  if (lane === "in") {
    const [principal, ...key] = rest;
    return { ...common, lane: "inbox", key: key.join("."), principal };
  }
  if (lane !== "inbox" && lane !== "control" && lane !== "parked") return undefined;
  return { ...common, lane, key: rest.join("."), principal: undefined };
}
