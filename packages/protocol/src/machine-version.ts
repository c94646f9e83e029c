/**
 * Orders versions of a machine by the numbers in them: `2` < `10`, `1.9` < `1.10`, `v1` < `v2`. What is missing counts as 0.
 * @returns below 0 when `a` is older, 0 when neither is newer (also when they have no numbers), above 0 when `a` is newer
 */
export function compareMachineVersions(a: string, b: string): number {
  if (a === b) return 0; // nearly always, before every commit
  const [left, right] = [numbersOf(a), numbersOf(b)];
  for (let i = 0; i < Math.max(left.length, right.length); i += 1) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

const numbersOf = (version: string): readonly number[] => (version.match(/[0-9]+/g) ?? []).map(Number);
