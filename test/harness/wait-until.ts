/** Polls until `condition` gives something truthy. @throws Error with the description and a dump of the state when it takes too long */
export async function waitUntil<T>(
  description: string,
  condition: () => Promise<T | undefined | false> | T | undefined | false,
  options: { readonly timeoutMs?: number; readonly tickMs?: number; readonly dump?: () => unknown } = {},
): Promise<T> {
  const { timeoutMs = 20_000, tickMs = 20 } = options;
  const deadline = performance.now() + timeoutMs;
  let lastError: unknown;
  for (;;) {
    try {
      const value = await condition();
      if (value !== undefined && value !== false) return value;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (performance.now() > deadline) {
      const state = options.dump === undefined ? "" : `\n${JSON.stringify(await options.dump(), undefined, 1)}`;
      throw new Error(`Not within ${timeoutMs} ms: ${description}${state}`, { cause: lastError });
    }
    await new Promise((resolve) => setTimeout(resolve, tickMs));
  }
}
