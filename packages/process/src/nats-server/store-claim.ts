import { createHash } from "node:crypto";
import { realpath } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { NatsServerFault } from "./nats-server-fault.ts";

/** Held while a server may write to a store. */
export interface StoreClaim {
  release(): Promise<void>;
}

/**
 * Keeps a second server off a store: nats-server itself takes no lock, and two of them on one folder destroy it. The claim is a socket name in
 * Linux's abstract namespace, so it ends with the process that holds it, however that dies. Other systems have no such names; there
 * the claim is empty.
 *
 * @param storeDir  existing folder
 * @throws NatsServerFault HF-8003 when another process of this machine holds it
 */
export async function claimStore(storeDir: string): Promise<StoreClaim> {
  if (process.platform !== "linux") return { release: () => Promise.resolve() };
  const folder = await realpath(storeDir);
  const name = createHash("sha256").update(folder).digest("hex").slice(0, 32);
  const server = createServer((socket) => socket.destroy());
  try {
    await listen(server, `\0holdfast-nats-store-${name}`);
  } catch (cause) {
    throw new NatsServerFault(
      "HF-8003",
      `nats-server on ${folder}: expected the store to be free, found another Holdfast process serving it. Stop that one, connect to its server, or choose another folder.`,
      { facts: { storeDir: folder }, cause },
    );
  }
  server.unref();
  return {
    release: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
      }),
  };
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ path }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
