import { blobStoreContract } from "./contracts/blob-store.contract.ts";
import { bytesOf, type ContractSetup, type HeldFault } from "./contracts/contract-setup.ts";
import { fleetRegistryContract } from "./contracts/fleet-registry.contract.ts";
import { journalContract } from "./contracts/journal.contract.ts";
import { messageLogContract } from "./contracts/message-log.contract.ts";
import { recordStoreContract } from "./contracts/record-store.contract.ts";
import type { FaultHandle } from "./fault-plan.ts";
import { MemoryBroker } from "./memory-broker.ts";

function memorySetup(): Promise<ContractSetup> {
  const broker = new MemoryBroker({ scheme: { pools: { d: 256 }, shards: 2 } });
  const [a, b] = [broker.connect("a"), broker.connect("b")];
  const nextWrite = (kind: "lostAck" | "lateWrite"): Promise<HeldFault> => {
    const handle: FaultHandle = broker.faults.next(
      ["commit", "publish", "append", "fleetCas"],
      { kind, hold: true },
      { node: "a" },
    );
    const release = (): Promise<void> => {
      handle.release();
      return broker.clock.settle();
    };
    return Promise.resolve({ happened: handle.happened, release });
  };
  return Promise.resolve({
    a,
    b,
    scheme: broker.scheme,
    recordBytes: (token, text) => bytesOf(JSON.stringify({ token, text })),
    publishOutside: (principal, key, bytes, messageId) => broker.publishOutside(principal, key, bytes, messageId),
    listenCore: (subject, deliver) => {
      const stop = broker.listen(subject, (message) => deliver(message.bytes));
      return Promise.resolve(async () => stop());
    },
    liveSubject: (key) => `hf.${broker.ns}.live.${key.split(".").slice(1).join(".")}`,
    readEvents: () => Promise.resolve(broker.events()),
    faults: {
      loseNextAck: () => nextWrite("lostAck"),
      delayNextWrite: () => nextWrite("lateWrite"),
      breakConnection: async () => a.link.blink(),
      fillInbox: async () => {
        broker.limit("inbox", { maxMessages: 0 });
        return async () => broker.limit("inbox", {});
      },
      damageBlob: async (sha256) => broker.damageBlob(sha256),
    },
    close: () => broker.clock.settle(),
  });
}

recordStoreContract(memorySetup);
messageLogContract(memorySetup);
journalContract(memorySetup);
fleetRegistryContract(memorySetup);
blobStoreContract(memorySetup);
