import { RuntimeFault } from "@holdfast/protocol";
import { afterAll, beforeAll } from "vitest";
import { PartitionAllocator, type ContractSetup, type MakeContractSetup } from "./contract-setup.ts";

/** What the tests of one suite share. */
export interface ContractSuite {
  /** @throws RuntimeFault HF-3008 outside of a running test */
  readonly setup: ContractSetup;
  readonly partitions: PartitionAllocator;
  /** `<word>-<n>`, another one at every call. */
  unique(word: string): string;
}

/** Makes the setup before the suite around the call and closes it afterwards. To be called inside `describe`. */
export function contractSuite(make: MakeContractSetup): ContractSuite {
  let running: { readonly setup: ContractSetup; readonly partitions: PartitionAllocator } | undefined;
  let count = 0;
  beforeAll(async () => {
    const setup = await make();
    running = { setup, partitions: new PartitionAllocator(setup.scheme) };
  });
  afterAll(async () => {
    await running?.setup.close();
    running = undefined;
  });
  const current = (): NonNullable<typeof running> => {
    if (running !== undefined) return running;
    throw new RuntimeFault(
      "HF-3008",
      "Contract suite: expected to be asked inside a test, was asked outside. Move the call.",
    );
  };
  return {
    get setup() {
      return current().setup;
    },
    get partitions() {
      return current().partitions;
    },
    unique: (word) => {
      count += 1;
      return `${word}-${count}`;
    },
  };
}
