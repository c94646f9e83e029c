import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  actorKey,
  childActorId,
  compareMachineVersions,
  ERROR_CATALOGUE,
  fnv1a32,
  hash128,
  parseActorKey,
  parseInboxSubject,
  parsePrincipalToken,
  partitionOf,
  rendezvousOwner,
  rendezvousScore,
  RuntimeFault,
  shardOf,
  subjectsOf,
  toPlainFault,
} from "./index.ts";

const scheme = { pools: { d: 32 }, shards: 8 };
const evenly = (...names: readonly string[]) => names.map((name) => ({ name, weight: 1 }));

describe("partition hash: golden vectors, part of the wire contract", () => {
  test.each([
    ["", 0x811c9dc5],
    ["a", 0xe40c292c],
    ["foobar", 0xbf9cf968],
    ["conversation\0c1", 0x7d5349f6],
    ["task\0grüße-日本", 0xe4cfd4ea],
  ])("FNV-1a-32 of %j", (text, expected) => {
    expect(fnv1a32(text)).toBe(expected);
  });

  test("type and id decide the partition, the partition decides the shard", () => {
    expect(partitionOf(scheme, "d", "conversation", "c1")).toBe("d-22");
    expect(shardOf(scheme, "d-19")).toBe(3);
    expect(() => partitionOf(scheme, "gpu", "task", "x")).toThrow(expect.objectContaining({ code: "HF-1002" }));
  });

  test("rendezvous spreads 32 partitions over two nodes and moves only those of a leaver", () => {
    const partitions = Array.from({ length: 32 }, (_, n) => `d-${n}`);
    const three = new Map(partitions.map((p) => [p, rendezvousOwner(p, evenly("a", "b", "c"))]));
    const two = new Map(partitions.map((p) => [p, rendezvousOwner(p, evenly("a", "b"))]));
    for (const [partition, owner] of three) if (owner !== "c") expect(two.get(partition)).toBe(owner);
    const ofA = [...two.values()].filter((owner) => owner === "a").length;
    expect(ofA).toBeGreaterThan(8);
    expect(ofA).toBeLessThan(24);
  });
});

describe("weighted rendezvous: golden vectors, part of the contract between nodes", () => {
  test.each([
    ["d-0", "node-a", 1, 0.5292233674729175],
    ["d-0", "node-a", 2.5, 1.323058418682294],
    ["d-31", "node-b", 1, 0.17377754022529024],
    ["gpu-7", "n-日本", 0.5, 3.1674389770165243],
  ])("score of %s on %s with weight %f", (partition, name, weight, expected) => {
    expect(rendezvousScore(partition, { name, weight })).toBeCloseTo(expected, 9);
  });

  test("who owns d-0 to d-15 of three nodes with weights 1, 2 and 0.5", () => {
    const nodes = [
      { name: "node-a", weight: 1 },
      { name: "node-b", weight: 2 },
      { name: "node-c", weight: 0.5 },
    ];
    const owners = Array.from({ length: 16 }, (_, n) => rendezvousOwner(`d-${n}`, nodes)?.slice(-1));
    expect(owners.join("")).toBe("ccaabcbbbcabbbac");
  });

  test("a node of three times the weight gets about three times as many", () => {
    const nodes = [
      { name: "light", weight: 1 },
      { name: "heavy", weight: 3 },
    ];
    const heavy = Array.from({ length: 1024 }, (_, n) => rendezvousOwner(`d-${n}`, nodes)).filter((n) => n === "heavy");
    expect(heavy.length).toBeGreaterThan(768 - 60);
    expect(heavy.length).toBeLessThan(768 + 60);
  });

  test("versions of machines are ordered by the numbers in them", () => {
    const sorted = ["10", "v1", "1.10", "2", "1.9"].toSorted(compareMachineVersions);
    expect(sorted).toEqual(["v1", "1.9", "1.10", "2", "10"]);
    expect([compareMachineVersions("1", "1.0"), compareMachineVersions("alpha", "beta")]).toEqual([0, 0]);
  });
});

describe("addresses", () => {
  test("a child's id is a function of parent, genesis, child id and revision, of constant length, one NATS token", () => {
    const id = childActorId("d-1.conversation.c1", "g1:5", "0.(weird) id~ with dots.and spaces", 3);
    expect(id).toMatch(/^[A-Za-z0-9_-]{1,67}$/);
    expect(childActorId("d-1.conversation.c1", "g1:5", "call", 3)).toBe(
      childActorId("d-1.conversation.c1", "g1:5", "call", 3),
    );
    const others = [
      childActorId("d-1.conversation.c1", "g1:6", "call", 3),
      childActorId("d-1.conversation.c1", "g1:5", "call", 4),
      childActorId("d-1.conversation.c2", "g1:5", "call", 3),
    ];
    expect(new Set([...others, childActorId("d-1.conversation.c1", "g1:5", "call", 3)]).size).toBe(4);
  });

  test("two labels that look alike after cleaning stay two actors", () => {
    expect(childActorId("d-1.a.b", "g:1", "x y", 1)).not.toBe(childActorId("d-1.a.b", "g:1", "x.y", 1));
  });

  test("hostile ids are refused before they become a subject", () => {
    for (const id of ["a b", "a.b", "a~1", "*", ">", "", "x".repeat(81), "ü", "a\0b", "../x"]) {
      expect(() => actorKey(scheme, "d", "task", id), id).toThrow(expect.objectContaining({ code: "HF-1002" }));
    }
  });

  test("keys survive the round trip", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,80}$/), (id) => {
        const key = actorKey(scheme, "d", "task", id);
        expect(parseActorKey(key)).toMatchObject({ type: "task", id });
        expect(subjectsOf("main").inbox(key).length).toBeLessThanOrEqual(255);
      }),
      { seed: 42 },
    );
  });

  test("hash128 is 26 characters of base32", () => {
    expect(hash128("")).toMatch(/^[a-z2-7]{26}$/);
  });
});

describe("subjects", () => {
  const subjects = subjectsOf("main");

  test("who sends is read from the subject", () => {
    const key = "d-1.conversation.c1";
    expect(parseInboxSubject("main", subjects.inbox(key))).toEqual({ key, lane: "inbox" });
    expect(parseInboxSubject("main", subjects.control(key))).toEqual({ key, lane: "control" });
    expect(parseInboxSubject("main", subjects.outside({ kind: "person", id: "local" }, key))).toEqual({
      key,
      lane: "inbox",
      principal: { kind: "person", id: "local", roles: [] },
    });
    expect(parseInboxSubject("other", subjects.inbox(key))).toBeUndefined();
    expect(parseInboxSubject("main", "hf.main.journal.x")).toBeUndefined();
  });

  test("a principal is one token and cannot smuggle another", () => {
    for (const token of ["person", "person-", "root-x", "person-a.b", "person-a b", `person-${"x".repeat(49)}`]) {
      expect(() => parsePrincipalToken(token), token).toThrow(expect.objectContaining({ code: "HF-1002" }));
    }
  });
});

describe("faults", () => {
  test.each(Object.keys(ERROR_CATALOGUE))("%s has the shape HF-<room><three digits>", (code) => {
    expect(code).toMatch(/^HF-[1-9]\d{3}$/);
  });

  test("name, code, facts survive; stack and cause do not travel", () => {
    class SpecialFault extends RuntimeFault {}
    const fault = new SpecialFault("HF-2004", "a: too large. Send less.", {
      facts: { size: 1 },
      cause: new Error("with a secret"),
    });
    expect(fault.name).toBe("SpecialFault");
    expect(JSON.parse(JSON.stringify(fault))).toEqual({
      name: "SpecialFault",
      code: "HF-2004",
      message: "a: too large. Send less.",
      facts: { size: 1 },
    });
    expect(toPlainFault(new TypeError("x"), "HF-5103")).toEqual({ name: "TypeError", code: "HF-5103", message: "x" });
    expect(toPlainFault(undefined, "HF-5103").code).toBe("HF-5103");
  });
});
