import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { connectNats, ensureNamespace, type Link, type LinkStatus, type OpenNamespace } from "@holdfast/jetstream";
import { inboxPrefixOf, provideNatsServer, startManagedNats, type ManagedNats } from "@holdfast/process";
import { z } from "zod";
import { startProxy, type Proxy } from "./jetstream-proxy.ts";

/** One real server of its own, with everything that was opened on it. */
export interface BrokerFixture {
  readonly nats: ManagedNats;
  /** A connection of the user `node`; through a proxy when one is given. */
  connect(options?: ConnectFixtureOptions): Promise<Link>;
  proxy(): Promise<Proxy>;
  /** A namespace nobody else uses, small: 8 partitions, 2 shards. */
  namespace(link: Link, options?: Partial<Parameters<typeof ensureNamespace>[1]>): Promise<OpenNamespace>;
  close(): Promise<void>;
}

export interface ConnectFixtureOptions {
  readonly via?: Proxy | undefined;
  readonly user?: Parameters<ManagedNats["credentials"]>[0] | undefined;
  readonly onStatus?: ((status: LinkStatus) => void) | undefined;
}

export const newToken = (): string => randomBytes(8).toString("hex");
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A value as the tests store it: a token, then text. */
export const tokenBytes = (token: string, text: string): Uint8Array => encoder.encode(`${token}|${text}`);
export const tokenOf = (bytes: Uint8Array): string | undefined => decoder.decode(bytes.subarray(0, 16));
export const textOf = (bytes: Uint8Array | undefined): string | undefined =>
  bytes === undefined ? undefined : decoder.decode(bytes);
export const bytesOf = (text: string): Uint8Array => encoder.encode(text);

/** A request of the JetStream API as an operator's tool would make it; `config` of the answer, where it has one. */
export async function askApi(
  link: Link,
  api: string,
  body: unknown = {},
): Promise<{ readonly text: string; readonly config: Readonly<Record<string, unknown>> }> {
  const reply = await link.requests.request(`$JS.API.${api}`, bytesOf(JSON.stringify(body)), undefined, 5000);
  if (reply.kind !== "answer") throw new Error(`${api}: ${reply.kind}`);
  const text = textOf(reply.bytes) ?? "";
  return { text, config: ApiAnswer.parse(JSON.parse(text)).config };
}
const ApiAnswer = z.object({ config: z.record(z.string(), z.unknown()).default({}) });

let namespaces = 0;

/** @param ns namespace that the guest users may reach. @param seats of runners */
export async function startBroker(ns = "guest", seats: readonly string[] = []): Promise<BrokerFixture> {
  const folder = await mkdtemp(join(tmpdir(), "hf-jetstream-"));
  const { path: binary } = await provideNatsServer({
    cacheDir: join(process.cwd(), ".holdfast"),
    env: { HOLDFAST_NATS_SERVER: process.env["HOLDFAST_NATS_SERVER"], PATH: process.env["PATH"] },
  });
  const nats = await startManagedNats({
    binary,
    storeDir: join(folder, "store"),
    configDir: join(folder, "config"),
    ns,
    shards: 2,
    durabilityClass: "P",
    seats,
  });
  const links: Link[] = [];
  const proxies: Proxy[] = [];
  return {
    nats,
    connect: async ({ via, user = "node", onStatus } = {}) => {
      const link = await connectNats({
        servers: [`127.0.0.1:${via?.port ?? nats.port}`],
        name: `test ${user}`,
        user,
        pass: nats.credentials(user).password,
        inboxPrefix: inboxPrefixOf(user),
        timeoutMs: 10_000,
        onStatus,
      });
      links.push(link);
      return link;
    },
    proxy: async () => {
      const proxy = await startProxy(nats.port);
      proxies.push(proxy);
      return proxy;
    },
    namespace: (link, options = {}) =>
      ensureNamespace(link, {
        ns: `t${(namespaces += 1)}`,
        pools: { d: 8 },
        shards: 2,
        inboxBytes: 64 * 1024 * 1024,
        parkedBytes: 16 * 1024 * 1024,
        newGeneration: newToken,
        ...options,
      }),
    close: async () => {
      await Promise.all(links.map((link) => link.close()));
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await nats.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
