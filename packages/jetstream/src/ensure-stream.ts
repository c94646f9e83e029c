import { RuntimeFault } from "@holdfast/protocol";
import { z } from "zod";
import { API_CODE } from "./api-codes.ts";
import { apiRequest } from "./api-request.ts";
import type { Link } from "./link.ts";
import { findStream, StreamInfo } from "./stream-info.ts";
import type { StreamDeclaration } from "./topology.ts";

/**
 * Adds the subjects of a declaration that an existing stream lacks: those of a pool that came later. Never removes any.
 * @throws RuntimeFault HF-4003 when the server refuses
 */
async function growSubjects(
  link: Link,
  declaration: StreamDeclaration,
  info: StreamInfo,
  signal?: AbortSignal,
): Promise<StreamInfo> {
  const { name, subjects } = declaration;
  const found = z.array(z.string()).safeParse(info.config["subjects"]).data ?? [];
  if (found.length >= subjects.length || !found.every((subject) => subjects.includes(subject))) return info;
  const result = await apiRequest(link, {
    api: `STREAM.UPDATE.${name}`,
    body: { ...info.config, subjects },
    answer: StreamInfo,
    signal,
  });
  if (result.kind === "refused") throw refused(declaration, result);
  return (await findStream(link, name, signal)) ?? info;
}

/**
 * Creates a stream unless it exists, gives it the subjects it lacks, then compares it field by field with its declaration. Several nodes may do so at once.
 *
 * Reading back is not a formality: a server drops fields it does not know without a word, and an existing stream is opened as it is.
 *
 * @returns the server's creation time stamp
 * @throws RuntimeFault HF-4003 when the stream differs from its declaration or cannot be created
 */
export async function ensureStream(link: Link, declaration: StreamDeclaration, signal?: AbortSignal): Promise<string> {
  const existing = await findStream(link, declaration.name, signal);
  const info =
    existing === undefined
      ? await createStream(link, declaration, signal)
      : await growSubjects(link, declaration, existing, signal);
  assertAsDeclared(declaration, info, existing !== undefined);
  return info.created;
}

async function createStream(link: Link, declaration: StreamDeclaration, signal?: AbortSignal): Promise<StreamInfo> {
  const { name, subjects, config } = declaration;
  const result = await apiRequest(link, {
    api: `STREAM.CREATE.${name}`,
    body: { name, subjects, ...config },
    answer: StreamInfo,
    signal,
  });
  if (result.kind === "refused" && result.code !== API_CODE.streamNameInUse) throw refused(declaration, result);
  // Asked again also after success: the answer to a creation repeats the request in part, only the stream itself tells what it became.
  const info = await findStream(link, name, signal);
  if (info === undefined) throw refused(declaration, { code: API_CODE.streamNotFound, reason: "it vanished" });
  return info;
}

function refused(
  declaration: StreamDeclaration,
  result: { readonly code: number; readonly reason: string },
): RuntimeFault {
  return new RuntimeFault(
    "HF-4003",
    `Stream ${declaration.name}: expected to be created or extended, found a refusal (${result.reason}, ${result.code}). Check replicas, the account's storage limits (byte limits of all streams are reserved) and overlapping subjects.`,
    { facts: { stream: declaration.name, apiCode: result.code } },
  );
}

/** @throws RuntimeFault HF-4003 naming the first field that differs */
function assertAsDeclared(declaration: StreamDeclaration, info: StreamInfo, existed: boolean): void {
  const wanted: Readonly<Record<string, unknown>> = {
    ...declaration.config,
    subjects: declaration.subjects.toSorted(),
  };
  for (const [field, value] of Object.entries(wanted)) {
    const raw = info.config[field];
    const found = field === "subjects" && Array.isArray(raw) ? raw.map(String).toSorted() : raw;
    if (isSame(value, found)) continue;
    throw new RuntimeFault(
      "HF-4003",
      `Stream ${declaration.name}, field ${field}: expected ${show(value)}, found ${show(found)}. ${fixFor(existed, found)}`,
      { facts: { stream: declaration.name, field, expected: show(value), found: show(found) } },
    );
  }
}

/** The server leaves out fields that are false, 0 or empty. */
function isSame(wanted: unknown, found: unknown): boolean {
  if (found === undefined) return wanted === false || wanted === 0;
  return JSON.stringify(wanted) === JSON.stringify(found);
}

const show = (value: unknown): string => (value === undefined ? "nothing" : JSON.stringify(value));

function fixFor(existed: boolean, found: unknown): string {
  if (existed) return "Edit the stream (nats stream edit) or start with the options it was created with.";
  return found === undefined
    ? "The server does not know this field: upgrade it."
    : "The server changed it: check the account's limits and the server's version.";
}
