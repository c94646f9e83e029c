import type { ValueExtension } from "@holdfast/durable";

type RefAddress = ReturnType<ValueExtension["encode"]>;

/** Stands for the actor references of another room: a class, which the codec alone would refuse. */
export class TestRef {
  readonly key: string;
  readonly id: string;
  readonly genesis: string | undefined;

  constructor({ key, id, genesis }: RefAddress) {
    this.key = key;
    this.id = id;
    this.genesis = genesis;
  }

  send(): string {
    return `sent to ${this.key}`;
  }
}

export const testRefs: ValueExtension = {
  tag: "ref",
  is: (value) => value instanceof TestRef,
  encode(value) {
    if (!(value instanceof TestRef)) throw new TypeError("not a TestRef");
    const { key, id, genesis } = value;
    return genesis === undefined ? { key, id } : { key, id, genesis };
  },
  decode: (plain) => new TestRef(plain),
};
