/** Runs `work` over items, at most `limit` at a time. One failing item never stops the others; the first failure is thrown at the end. */
export async function inParallel<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = [];
  const rest = items.values();
  const run = async (): Promise<void> => {
    for (const item of rest) {
      try {
        await work(item);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, run));
  if (failures.length > 0) throw failures[0];
}
