import { RuntimeFault, subjectsOf, TypeHome } from "@holdfast/protocol";
import { compareAndSet } from "./compare-and-set.ts";
import { filteredHistory } from "./filtered-history.ts";
import type { Link } from "./link.ts";

const fleetStream = (ns: string): string => `KV_${subjectsOf(ns).fleetBucket}`;
const typeSubject = (ns: string, type: string): string => `$KV.${subjectsOf(ns).fleetBucket}.type.${type}`;

/** Pool of every actor type that any node of the namespace has served so far. */
export async function readTypeHomes(
  link: Link,
  ns: string,
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const stored = await filteredHistory(link, { stream: fleetStream(ns), filters: [typeSubject(ns, "*")], signal });
  const homes = stored.flatMap(({ bytes }) => tryHome(bytes) ?? []);
  return new Map(homes.map(({ type, pool }) => [type, pool]));
}

/**
 * Puts on record where types live, for senders that do not serve them. The first one decides.
 *
 * @param types  type → pool
 * @throws RuntimeFault HF-4005 when a type lives elsewhere, HF-4008 when nobody answered
 */
export async function settleTypeHomes(
  link: Link,
  ns: string,
  types: ReadonlyMap<string, string>,
  newToken: () => string,
): Promise<ReadonlyMap<string, string>> {
  const known = new Map(await readTypeHomes(link, ns));
  for (const [type, pool] of types) {
    if (!known.has(type)) {
      const home: TypeHome = { v: 1, type, pool, token: newToken() };
      const outcome = await compareAndSet(link, {
        stream: fleetStream(ns),
        subject: typeSubject(ns, type),
        bytes: new TextEncoder().encode(JSON.stringify(home)),
        expectedSeq: 0,
        token: home.token,
        tokenOf: (bytes) => tryHome(bytes)?.token,
      });
      if (outcome.kind === "unknown") {
        throw new RuntimeFault(
          "HF-4008",
          `Pool of actor type ${type}: expected an acknowledgement, found none (${outcome.reason}). Start the node again.`,
          { facts: { ns, type } },
        );
      }
      const first = outcome.kind === "committed" ? pool : (await readTypeHomes(link, ns)).get(type);
      known.set(type, first ?? pool);
    }
    const home = known.get(type);
    if (home === pool) continue;
    throw new RuntimeFault(
      "HF-4005",
      `Actor type ${type}: this build puts it into pool ${pool}, in namespace ${ns} it lives in pool ${home}. A type stays in the pool where its first node put it: give the definition that pool, or the type another name.`,
      { facts: { ns, type } },
    );
  }
  return known;
}

function tryHome(bytes: Uint8Array): TypeHome | undefined {
  try {
    return TypeHome.safeParse(JSON.parse(new TextDecoder().decode(bytes))).data;
  } catch {
    return undefined; // removed, or written by something else: nobody's home
  }
}
