import {
  DEFAULT_PARTITIONS,
  DEFAULT_POOL,
  DEFAULT_SHARDS,
  Manifest,
  RuntimeFault,
  subjectsOf,
} from "@holdfast/protocol";
import { z } from "zod";
import { compareAndSet } from "./compare-and-set.ts";
import { readLast } from "./leader-read.ts";
import type { Link } from "./link.ts";

/** Layout asked for by whoever creates or opens a namespace; what is left out is taken from the manifest, or the default. */
export interface NamespaceLayout {
  /** Pool name → number of partitions. Pools that the manifest does not have are added; the size of a pool is fixed when it is added. */
  readonly pools?: Readonly<Record<string, number>> | undefined;
  readonly shards?: number | undefined;
}

/** The manifest and the sequence it is stored at. */
export interface StoredManifest {
  readonly manifest: Manifest;
  readonly seq: number;
}

const MANIFEST_KEY = "manifest";
const STREAMS_KEY = "streams";

/** Creation time of every stream of the namespace, as the server told it. Another time means another stream of the same name. */
const StreamLedger = z.object({ v: z.literal(1), created: z.record(z.string(), z.string()) });

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const fleetStream = (ns: string): string => `KV_${subjectsOf(ns).fleetBucket}`;
const fleetSubject = (ns: string, key: string): string => `$KV.${subjectsOf(ns).fleetBucket}.${key}`;

/**
 * @returns undefined when the namespace has no manifest yet
 * @throws RuntimeFault HF-4005 when it cannot be read, HF-4006 when there is no fleet bucket
 */
export async function readManifest(link: Link, ns: string, signal?: AbortSignal): Promise<StoredManifest | undefined> {
  const stored = await readLast(link, fleetStream(ns), fleetSubject(ns, MANIFEST_KEY), { signal });
  if (stored === undefined) return undefined;
  const parsed = Manifest.safeParse(parseJson(stored.bytes));
  if (parsed.success && parsed.data.ns === ns) return { manifest: parsed.data, seq: stored.seq };
  throw new RuntimeFault(
    "HF-4005",
    `Manifest of namespace ${ns}: expected one of version 1 for this namespace, found ${parsed.success ? `one of ${parsed.data.ns}` : "something unreadable"}. Use a build that knows it, or another namespace.`,
    { facts: { ns } },
  );
}

/**
 * A new manifest, not stored yet and without generations.
 *
 * @throws RuntimeFault HF-1001 when pools or shards are out of bounds
 */
export function draftManifest(ns: string, layout: NamespaceLayout): Manifest {
  const parsed = Manifest.safeParse({
    v: 1,
    ns,
    pools: layout.pools ?? { [DEFAULT_POOL]: DEFAULT_PARTITIONS },
    shards: layout.shards ?? DEFAULT_SHARDS,
    hash: "fnv1a32",
    generations: {},
  });
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ");
  throw new RuntimeFault("HF-1001", `Namespace ${ns}: ${fields}. Correct pools and shards.`, { facts: { ns } });
}

/** @returns the manifest with the pools it lacks, itself when it lacks none */
export function withPools(manifest: Manifest, pools: Readonly<Record<string, number>>): Manifest {
  const missing = Object.entries(pools).filter(([pool]) => manifest.pools[pool] === undefined);
  if (missing.length === 0) return manifest;
  return draftedFrom(manifest, { ...manifest.pools, ...Object.fromEntries(missing) });
}

/** @throws RuntimeFault HF-1001 when a pool is out of bounds */
function draftedFrom(manifest: Manifest, pools: Readonly<Record<string, number>>): Manifest {
  return { ...manifest, pools: draftManifest(manifest.ns, { pools, shards: manifest.shards }).pools };
}

/**
 * Gives a generation to every stream that has none: all of them in a draft, later those that a newer build declares.
 *
 * @param newGeneration random `[a-z0-9]{1,16}`
 * @returns undefined when none is missing
 */
export function withGenerations(
  manifest: Manifest,
  streams: readonly string[],
  newGeneration: () => string,
): Manifest | undefined {
  const missing = streams.filter((stream) => manifest.generations[stream] === undefined);
  if (missing.length === 0) return undefined;
  const added = Object.fromEntries(missing.map((stream) => [stream, newGeneration()]));
  return { ...manifest, generations: { ...manifest.generations, ...added } };
}

/**
 * Stores a manifest over the one at `expectedSeq` (0: there is none).
 * @returns false when somebody else was first
 * @throws RuntimeFault HF-4008 when it is unknown whether it was stored
 */
export async function writeManifest(link: Link, manifest: Manifest, expectedSeq: number): Promise<boolean> {
  return writeOnce(link, manifest.ns, MANIFEST_KEY, JSON.stringify(manifest), expectedSeq);
}

/**
 * @throws RuntimeFault HF-4005 when pools or shards were asked for and the manifest has others
 */
export function assertLayout(manifest: Manifest, layout: NamespaceLayout): void {
  const found = { pools: sorted(manifest.pools), shards: manifest.shards };
  const pools = sorted({ ...manifest.pools, ...layout.pools });
  const wanted = { pools, shards: layout.shards ?? manifest.shards };
  if (JSON.stringify(found) === JSON.stringify(wanted)) return;
  throw new RuntimeFault(
    "HF-4005",
    `Namespace ${manifest.ns}: expected ${JSON.stringify(wanted)}, its manifest has ${JSON.stringify(found)}. Shards and the size of a pool are fixed when they are created: leave these options out, or use another namespace.`,
    { facts: { ns: manifest.ns } },
  );
}

/** @returns undefined when it was not written yet */
export async function readStreamLedger(
  link: Link,
  ns: string,
  signal?: AbortSignal,
): Promise<{ readonly created: Readonly<Record<string, string>>; readonly seq: number } | undefined> {
  const stored = await readLast(link, fleetStream(ns), fleetSubject(ns, STREAMS_KEY), { signal });
  if (stored === undefined) return undefined;
  const parsed = StreamLedger.safeParse(parseJson(stored.bytes));
  if (parsed.success) return { created: parsed.data.created, seq: stored.seq };
  throw new RuntimeFault(
    "HF-4005",
    `Namespace ${ns}, key ${STREAMS_KEY}: expected the creation times of its streams, found something unreadable. Use a build that knows it.`,
    { facts: { ns } },
  );
}

/** @returns false when somebody else was first @throws as writeManifest */
export async function writeStreamLedger(
  link: Link,
  ns: string,
  created: Readonly<Record<string, string>>,
  expectedSeq: number,
): Promise<boolean> {
  return writeOnce(link, ns, STREAMS_KEY, JSON.stringify({ v: 1, created }), expectedSeq);
}

/** The whole text serves as token: manifests carry random generations, and two equal ledgers are interchangeable. */
async function writeOnce(link: Link, ns: string, key: string, text: string, expectedSeq: number): Promise<boolean> {
  const outcome = await compareAndSet(link, {
    stream: fleetStream(ns),
    subject: fleetSubject(ns, key),
    bytes: encoder.encode(text),
    expectedSeq,
    token: text,
    tokenOf: (bytes) => decoder.decode(bytes),
  });
  if (outcome.kind !== "unknown") return outcome.kind === "committed";
  throw new RuntimeFault(
    "HF-4008",
    `Namespace ${ns}, key ${key}: expected an acknowledgement, found none (${outcome.reason}). Try again.`,
    { facts: { ns, key } },
  );
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    // The schema refuses undefined, and its caller says what was being read.
    return undefined;
  }
}

const sorted = (pools: Readonly<Record<string, number>>): Readonly<Record<string, number>> =>
  Object.fromEntries(Object.entries(pools).toSorted(([a], [b]) => (a < b ? -1 : 1)));
