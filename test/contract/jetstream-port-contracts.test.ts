import { filteredHistory, publishStored, readLast, streamPosition, type Link } from "@holdfast/jetstream";
import { composeNatsPorts } from "@holdfast/nats";
import { shardOf, subjectsOf, tryDecodeLifecycleEvent } from "@holdfast/protocol";
import {
  blobStoreContract,
  fleetRegistryContract,
  journalContract,
  messageLogContract,
  recordStoreContract,
  type ContractSetup,
  type HeldFault,
} from "@holdfast/runtime/testing";
import { afterAll, beforeAll } from "vitest";
import { z } from "zod";
import { askApi, startBroker, textOf, tokenBytes, tokenOf, type BrokerFixture } from "./jetstream-fixture.ts";
import type { Ambush } from "./jetstream-proxy.ts";

let broker: BrokerFixture;
beforeAll(async () => {
  broker = await startBroker();
});
afterAll(() => broker.close());

/** Tokens of the fixture have 16 characters; those of the contracts are padded to that. */
const padded = (token: string): string => token.padEnd(16);

const held = ({ happened, release }: Ambush): HeldFault => ({ happened, release: async () => release() });
const ObjectMeta = z.object({ nuid: z.string() });

async function natsSetup(): Promise<ContractSetup> {
  const proxy = await broker.proxy();
  const direct = await broker.connect();
  const proxied = await broker.connect({ via: proxy });
  const namespace = await broker.namespace(direct, { pools: { d: 256 } });
  const { manifest } = namespace;
  const subjects = subjectsOf(manifest.ns);
  const ports = (link: Link) =>
    composeNatsPorts(link, namespace, {
      tokenOf: (bytes) => tokenOf(bytes)?.trimEnd(),
      onFault: (fault) => {
        throw fault;
      },
    });
  const blobs = { stream: `OBJ_${subjects.blobsBucket}`, prefix: `$O.${subjects.blobsBucket}` };

  return {
    a: ports(proxied),
    b: ports(direct),
    scheme: manifest,
    recordBytes: (token, text) => tokenBytes(padded(token), text),
    publishOutside: (principal, key, bytes, messageId) =>
      publishStored(direct, { subject: subjects.outside(principal, key), bytes, messageId }),
    listenCore: async (subject, deliver) => {
      const stop = direct.subscribe(subject, (message) => deliver(message.bytes));
      await direct.nc.flush();
      return async () => stop();
    },
    liveSubject: (key) => subjects.live(key),
    readEvents: async () => {
      const stream = subjects.eventsStream(0);
      const messages = await filteredHistory(direct, { stream, filters: [">"] });
      return messages.map((message) => {
        const { subject, bytes } = message;
        const decoded = tryDecodeLifecycleEvent((name) => message.header(name), textOf(bytes) ?? "");
        return { subject, event: decoded.kind === "event" ? decoded.event : decoded };
      });
    },
    faults: {
      loseNextAck: async () => held(proxy.loseNextAnswer()),
      delayNextWrite: async () => held(proxy.delayNextMessage()),
      breakConnection: async () => proxy.cut(),
      fillInbox: async (partition) => {
        const stream = subjects.inboxStream(shardOf(manifest, partition));
        const { messages } = await streamPosition(direct, stream);
        await changeStream(direct, stream, { max_msgs: messages });
        return () => changeStream(direct, stream, { max_msgs: -1 });
      },
      damageBlob: async (sha256) => {
        const meta = await readLast(direct, blobs.stream, `${blobs.prefix}.M.${padded64(sha256)}`);
        const { nuid } = ObjectMeta.parse(JSON.parse(textOf(meta?.bytes) ?? ""));
        const chunk = await readLast(direct, blobs.stream, `${blobs.prefix}.C.${nuid}`);
        await askApi(direct, `STREAM.MSG.DELETE.${blobs.stream}`, { seq: chunk?.seq });
        await publishStored(direct, {
          subject: `${blobs.prefix}.C.${nuid}`,
          bytes: new Uint8Array(chunk?.bytes ?? []).fill(7),
        });
      },
    },
    close: async () => {
      await Promise.all([direct.close(), proxied.close()]);
    },
  };
}

async function changeStream(link: Link, stream: string, change: object): Promise<void> {
  const { config } = await askApi(link, `STREAM.INFO.${stream}`);
  await askApi(link, `STREAM.UPDATE.${stream}`, { ...config, ...change });
}

const padded64 = (name: string): string => {
  const text = Buffer.from(name).toString("base64url");
  return text.padEnd(Math.ceil(text.length / 4) * 4, "=");
};

recordStoreContract(natsSetup);
messageLogContract(natsSetup);
journalContract(natsSetup);
fleetRegistryContract(natsSetup);
blobStoreContract(natsSetup);
