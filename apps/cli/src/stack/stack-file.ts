import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { RuntimeFault } from "@holdfast/protocol";
import { z } from "zod";

const Credentials = z.object({ user: z.string(), password: z.string(), inboxPrefix: z.string() });

/** Where a running stack can be reached. Holds passwords: mode 0600, inside the ignored home folder. */
export const StackFile = z.object({
  v: z.literal(1),
  pid: z.int(),
  namespace: z.string(),
  natsUrl: z.string(),
  client: Credentials,
  operator: Credentials,
  subscriber: Credentials.optional(),
  durabilityClass: z.string(),
  modelUrl: z.string(),
  ledgerUrl: z.string(),
  root: z.string(),
  nodes: z.array(z.object({ name: z.string(), pid: z.int() })),
});
export type StackFile = z.infer<typeof StackFile>;

const pathIn = (home: string): string => join(home, "stack.json");

export async function writeStackFile(home: string, stack: StackFile): Promise<void> {
  await mkdir(home, { recursive: true });
  const path = pathIn(home);
  await writeFile(`${path}.new`, JSON.stringify(stack, undefined, 2), { mode: 0o600 });
  await chmod(`${path}.new`, 0o600);
  await rename(`${path}.new`, path);
}

export const removeStackFile = (home: string): Promise<void> => rm(pathIn(home), { force: true });

/** @throws RuntimeFault HF-7003 when no stack runs from this home */
export async function readStackFile(home: string): Promise<StackFile> {
  const stack = await tryStackFile(home);
  if (stack !== undefined) return stack;
  throw new RuntimeFault(
    "HF-7003",
    `No running stack under ${home}. Start one with "npm start -- --stay", or set HOLDFAST_NATS_URL to a server of your own.`,
  );
}

/** @returns undefined when none runs */
export async function tryStackFile(home: string): Promise<StackFile | undefined> {
  let text: string;
  try {
    text = await readFile(pathIn(home), "utf8");
  } catch {
    return undefined;
  }
  const stack = StackFile.safeParse(JSON.parse(text)).data;
  return stack !== undefined && isAlive(stack.pid) ? stack : undefined;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
