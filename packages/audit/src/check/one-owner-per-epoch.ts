import type { Judge, Objection } from "./case-file.ts";

const partitionOf = (key: string): string => key.slice(0, key.indexOf("."));

/** One incarnation per partition and epoch, in journals, headers and leases; and epochs of one actor never fall. */
export const judgeOwners: Judge = ({ actors, journals, evidence }) => {
  const objections: Objection[] = [];
  const owners = new Map<string, { readonly incarnation: string; readonly where: string }>();
  const see = (partition: string, epoch: number, incarnation: string, where: string): void => {
    const owned = `${partition} ${epoch}`;
    const known = owners.get(owned);
    if (known === undefined) owners.set(owned, { incarnation, where });
    else if (known.incarnation !== incarnation)
      objections.push({
        code: "two-owners",
        key: partition,
        at: epoch,
        expected: `${known.incarnation} alone (${known.where})`,
        found: `${incarnation} (${where})`,
      });
  };
  for (const { key, entries } of journals.values()) {
    let last = 0;
    for (const { rev, writer } of entries) {
      if (writer === undefined) {
        objections.push({
          code: "owner-unknown",
          key,
          at: rev,
          expected: "who committed it",
          found: "an entry without it",
        });
        continue;
      }
      const { epoch, incarnation } = writer;
      see(partitionOf(key), epoch, incarnation, `${key} revision ${rev}`);
      if (epoch < last)
        objections.push({
          code: "epoch-fell",
          key,
          at: rev,
          expected: `epoch ${last} or later`,
          found: `epoch ${epoch}`,
        });
      last = Math.max(last, epoch);
    }
    const header = actors.get(key)?.header;
    if (header === undefined || header.genesis !== entries[0]?.genesis) continue;
    see(partitionOf(key), header.epoch, header.writer, `record of ${key}`);
    if (header.epoch < last)
      objections.push({
        code: "epoch-fell",
        key,
        at: header.rev,
        expected: `epoch ${last} or later`,
        found: `epoch ${header.epoch}`,
      });
  }
  for (const { partition, epoch, holder } of evidence.leases) {
    see(partition, epoch, holder, "lease");
    const ahead = [...owners.keys()].find((owned) => isLater(owned, partition, epoch));
    if (ahead === undefined) continue;
    objections.push({
      code: "lease-behind",
      key: partition,
      at: epoch,
      expected: `a lease of epoch ${ahead.split(" ")[1]}`,
      found: `epoch ${epoch}`,
    });
  }
  return objections;
};

function isLater(owned: string, partition: string, epoch: number): boolean {
  const [other, seen] = owned.split(" ");
  return other === partition && Number(seen) > epoch;
}
