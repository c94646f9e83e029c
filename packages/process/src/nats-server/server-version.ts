/**
 * Oldest server Holdfast runs on. 2.9 loses acknowledged key-value entries after an unclean stop; 2.10.20 to 2.10.22 could
 * lose a whole stream; `sync_interval: always` exists from 2.10.
 */
export const MINIMUM_SERVER_VERSION = "2.10.23";

/** Oldest release line that is still supported; the contract suite runs on it and on the newest. */
export const OLDEST_SUPPORTED_LINE = "2.10";

const VERSION = /(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?/;

/**
 * Reads a version out of `nats-server --version` ("nats-server: v2.10.27") or of a bare version.
 *
 * @returns e.g. "2.10.27" or "2.12.0-RC.1"; undefined when the text holds no version
 */
export function tryServerVersion(text: string): string | undefined {
  return VERSION.exec(text)?.[0];
}

/** Order of two versions that `tryServerVersion` returned: negative when `a` is older. A pre-release is older than its release. */
export function compareServerVersions(a: string, b: string): number {
  const [left, right] = [VERSION.exec(a), VERSION.exec(b)];
  for (const index of [1, 2, 3]) {
    const difference = Number(left?.[index] ?? 0) - Number(right?.[index] ?? 0);
    if (difference !== 0) return difference;
  }
  const [leftTag, rightTag] = [left?.[4], right?.[4]];
  if (leftTag === rightTag) return 0;
  if (leftTag === undefined) return 1;
  if (rightTag === undefined) return -1;
  return leftTag < rightTag ? -1 : 1;
}

export const isRecentEnough = (version: string): boolean => compareServerVersions(version, MINIMUM_SERVER_VERSION) >= 0;

/** Release line of a version, e.g. "2.10" of "2.10.27". */
export const releaseLineOf = (version: string): string => version.split(".").slice(0, 2).join(".");
