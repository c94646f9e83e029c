import { RuntimeFault } from "@holdfast/protocol";

/**
 * Oldest server accepted. 2.9 loses acknowledged values of a bucket on a crash, 2.10.20 to 2.10.22 can lose a whole stream after plain
 * process kills (nats-server #6888, fixed in 2.10.23).
 */
export const MINIMUM_SERVER_VERSION = "2.10.23";

/** `major.minor.patch` as numbers; a pre-release suffix is ignored. @returns undefined when it is not a version */
function parseVersion(text: string): readonly [number, number, number] | undefined {
  const match = /^v?(\d+)\.(\d+)\.(\d+)/.exec(text);
  if (match === null) return undefined;
  return [Number(match[1]), Number(match[2]), Number(match[3])];
}

export function isServerVersionAccepted(version: string): boolean {
  const found = parseVersion(version);
  const wanted = parseVersion(MINIMUM_SERVER_VERSION);
  if (found === undefined || wanted === undefined) return false;
  for (let part = 0; part < 3; part++) {
    const difference = (found[part] ?? 0) - (wanted[part] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}

/** @throws RuntimeFault HF-4002 when the server is older than MINIMUM_SERVER_VERSION */
export function assertServerVersion(address: string, version: string): void {
  if (isServerVersionAccepted(version)) return;
  throw new RuntimeFault(
    "HF-4002",
    `nats-server at ${address}: version ${version}, at least ${MINIMUM_SERVER_VERSION} is needed because older ones lose acknowledged data when killed. Upgrade the server.`,
    { facts: { address, version, minimum: MINIMUM_SERVER_VERSION } },
  );
}
