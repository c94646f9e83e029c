import { compareMachineVersions, NO_NEEDS, type PartitionNeeds } from "@holdfast/protocol";

/** Whether a lease already lists what is about to be written. */
export function coversNeeds(listed: PartitionNeeds = NO_NEEDS, wanted: PartitionNeeds): boolean {
  return (
    wanted.formats.every((format) => listed.formats.includes(format)) &&
    Object.entries(wanted.machines).every(([type, version]) => {
      const known = listed.machines[type];
      return known !== undefined && compareMachineVersions(known, version) >= 0;
    })
  );
}

/** Both together: every format, of every type the newest version. */
export function joinNeeds(listed: PartitionNeeds = NO_NEEDS, wanted: PartitionNeeds): PartitionNeeds {
  const machines = { ...listed.machines };
  for (const [type, version] of Object.entries(wanted.machines)) {
    const known = machines[type];
    if (known === undefined || compareMachineVersions(known, version) < 0) machines[type] = version;
  }
  return { formats: [...new Set([...listed.formats, ...wanted.formats])].toSorted((a, b) => a - b), machines };
}
