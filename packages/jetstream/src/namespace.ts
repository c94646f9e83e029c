// A namespace: one installation's streams, laid out by one manifest.
//
//   N1  the manifest is written by create; whoever comes second reads the first one's, and may add pools
//   N2  every stream is as declared, or nobody starts (HF-4003)
//   N3  a stream that is missing though it was recorded, or was created at another time than recorded, has lost data (HF-4006): it is
//       never created again silently, because cursors and incarnations would point into a sequence that means something else

//   N4  pools are added, never removed or resized: the manifest first, then the subjects of the streams, then both are looked at again

import { Namespace, RuntimeFault, subjectsOf, type Ancestor, type Manifest } from "@holdfast/protocol";
import { ensureStream } from "./ensure-stream.ts";
import type { Link } from "./link.ts";
import {
  assertLayout,
  draftManifest,
  readManifest,
  readStreamLedger,
  withGenerations,
  withPools,
  writeManifest,
  writeStreamLedger,
  type NamespaceLayout,
} from "./manifest.ts";
import { backoffMs, pause, throwIfAborted } from "./pause.ts";
import { findStream, streamPosition } from "./stream-info.ts";
import { fleetDeclaration, topologyOf, type TopologyOptions } from "./topology.ts";

/** 25 ms doubling: about 1.5 s in all. */
const SUBJECT_TRIES = 6;

export interface OpenNamespace {
  readonly manifest: Manifest;
  /** Stream name → creation time as the server told it when the namespace was created. */
  readonly streamCreated: Readonly<Record<string, string>>;
}

export interface EnsureNamespaceOptions extends NamespaceLayout, TopologyOptions {
  readonly ns: string;
  /** Random token `[a-z0-9]{1,16}`; called once per stream when the namespace is new. */
  readonly newGeneration: () => string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Creates a namespace, or opens it and checks that it is as it should be. Several nodes may do so at once.
 *
 * @throws RuntimeFault HF-1001 for an impossible name or layout, HF-4003 when a stream differs from its declaration,
 *   HF-4005 when the manifest has another layout than asked for, HF-4006 when a stream was lost (N3), HF-4008 when NATS did not answer
 */
export async function ensureNamespace(link: Link, options: EnsureNamespaceOptions): Promise<OpenNamespace> {
  assertNamespace(options.ns);
  await ensureStream(link, fleetDeclaration(options.ns, options), options.signal);
  let manifest = await createOrReadManifest(link, options);
  for (let tries = 0; ; tries += 1) {
    assertLayout(manifest, options);
    const streamCreated = await ensureStreams(link, manifest, options).catch((error: unknown) => {
      if (error instanceof RuntimeFault && error.code === "HF-4003") return error;
      throw error;
    });
    // N4: somebody added a pool meanwhile, and the streams were compared with, or extended by, what was true before.
    const now = await createOrReadManifest(link, options);
    const isSame = JSON.stringify(now) === JSON.stringify(manifest);
    if (isSame && !(streamCreated instanceof RuntimeFault)) return { manifest, streamCreated };
    if (isSame && streamCreated instanceof RuntimeFault) {
      if (streamCreated.facts["field"] !== "subjects" || tries >= SUBJECT_TRIES) throw streamCreated;
      // A stream is updated without a condition: somebody who had read an older manifest took ours away, and is about to find out (N4).
      await pause(backoffMs(tries), options.signal);
      throwIfAborted(options.signal);
    }
    manifest = now;
  }
}

/**
 * Opens a namespace that exists, without creating or checking its streams; for programs that only use it.
 *
 * @throws RuntimeFault HF-4005 when there is none, or it was never completed
 */
export async function openNamespace(link: Link, ns: string, signal?: AbortSignal): Promise<OpenNamespace> {
  assertNamespace(ns);
  const fleet = await findStream(link, `KV_${subjectsOf(ns).fleetBucket}`, signal);
  const stored = fleet === undefined ? undefined : await readManifest(link, ns, signal);
  const ledger = stored === undefined ? undefined : await readStreamLedger(link, ns, signal);
  if (stored !== undefined && ledger !== undefined) {
    return { manifest: stored.manifest, streamCreated: ledger.created };
  }
  throw new RuntimeFault(
    "HF-4005",
    `Namespace ${ns}: expected to exist, found no manifest. Start a node of it first, or correct the name.`,
    { facts: { ns } },
  );
}

/**
 * After a loss was noticed (N3): creates streams that are missing and gives every stream that is not the recorded one a new generation,
 * so that no old cursor, mark or incarnation is taken for a current one. What a stream that only lost its tail still holds keeps its meaning:
 * it was considered, or not, as before. For operators, with all nodes stopped.
 *
 * @param alsoRenew streams that are the recorded ones but lost their tail
 * @returns names of the streams with a new generation
 */
export async function renewGenerations(
  link: Link,
  options: EnsureNamespaceOptions,
  alsoRenew: readonly string[] = [],
): Promise<readonly string[]> {
  const { ns, signal } = options;
  const stored = await readManifest(link, ns, signal);
  const ledger = await readStreamLedger(link, ns, signal);
  if (stored === undefined) return [];
  const created: Record<string, string> = {};
  for (const declaration of topologyOf(stored.manifest, options)) {
    created[declaration.name] = await ensureStream(link, declaration, signal);
  }
  const lost = Object.keys(created).filter(
    (name) => alsoRenew.includes(name) || ledger?.created[name] !== created[name],
  );
  const generations = { ...stored.manifest.generations };
  const lineage: Record<string, readonly Ancestor[]> = { ...stored.manifest.lineage };
  for (const name of lost) {
    const isSame = ledger?.created[name] === created[name];
    const former = stored.manifest.generations[name];
    lineage[name] =
      isSame && former !== undefined
        ? continued(former, lineage[name] ?? [], (await streamPosition(link, name, signal)).lastSeq)
        : [];
    generations[name] = options.newGeneration();
  }
  // Manifest first: with the new ledger and the old generations a crash in between would hide the loss.
  const manifestWritten = await writeManifest(
    link,
    { ...stored.manifest, generations, lineage: mutable(lineage) },
    stored.seq,
  );
  const ledgerWritten = manifestWritten && (await writeStreamLedger(link, ns, created, ledger?.seq ?? 0));
  if (ledgerWritten) return lost;
  throw new RuntimeFault(
    "HF-4005",
    `Namespace ${ns}: somebody else changed its manifest meanwhile. Stop all nodes and try again.`,
    {
      facts: { ns },
    },
  );
}

/** What is left of each generation when the newest ends at `lastSeq`. */
const continued = (former: string, before: readonly Ancestor[], lastSeq: number): readonly Ancestor[] => [
  { generation: former, upTo: lastSeq },
  ...before.map(({ generation, upTo }) => ({ generation, upTo: Math.min(upTo, lastSeq) })),
];

const mutable = (lineage: Readonly<Record<string, readonly Ancestor[]>>): Record<string, Ancestor[]> =>
  Object.fromEntries(Object.entries(lineage).map(([name, ancestors]) => [name, [...ancestors]]));

function assertNamespace(ns: string): void {
  const parsed = Namespace.safeParse(ns);
  if (parsed.success) return;
  throw new RuntimeFault(
    "HF-1001",
    `Namespace "${ns}": expected ${parsed.error.issues[0]?.message}. Choose another name.`,
    {
      facts: { ns },
    },
  );
}

/** N1. */
async function createOrReadManifest(link: Link, options: EnsureNamespaceOptions): Promise<Manifest> {
  for (;;) {
    const stored = await readManifest(link, options.ns, options.signal);
    const known = stored?.manifest ?? draftManifest(options.ns, options);
    const manifest = withPools(known, options.pools ?? {});
    const streams = topologyOf(manifest, options).map(({ name }) => name);
    const complete = withGenerations(manifest, streams, options.newGeneration) ?? manifest;
    if (complete === stored?.manifest) return complete;
    await writeManifest(link, complete, stored?.seq ?? 0);
  }
}

/** N2, N3. */
async function ensureStreams(
  link: Link,
  manifest: Manifest,
  options: EnsureNamespaceOptions,
): Promise<Readonly<Record<string, string>>> {
  const declarations = topologyOf(manifest, options);
  const ledger = await readStreamLedger(link, manifest.ns, options.signal);
  const recorded = Object.entries(ledger?.created ?? {});
  await Promise.all(
    recorded.map(async ([name, created]) => {
      const info = await findStream(link, name, options.signal);
      if (info?.created !== created) throw streamLost(name, created, info?.created);
    }),
  );
  const times = await Promise.all(
    declarations.map(
      async (declaration) => [declaration.name, await ensureStream(link, declaration, options.signal)] as const,
    ),
  );
  const created = { ...ledger?.created, ...Object.fromEntries(times) };
  const isRecorded = Object.keys(created).length === recorded.length;
  if (isRecorded || (await writeStreamLedger(link, manifest.ns, created, ledger?.seq ?? 0))) return created;
  return ensureStreams(link, manifest, options); // another node wrote it first: check against that one
}

function streamLost(name: string, recorded: string, found: string | undefined): RuntimeFault {
  return new RuntimeFault(
    "HF-4006",
    `Stream ${name}: expected the one created at ${recorded}, found ${found === undefined ? "none" : `one created at ${found}`}. Restore it from a backup, or renew its generation with all nodes stopped.`,
    { facts: { stream: name } },
  );
}
