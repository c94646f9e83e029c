/**
 * Waits for SIGTERM or SIGINT. The first one resolves; `now` aborts at the second one.
 * @returns the name of the signal, and an AbortSignal for impatient people
 */
export function untilSignalled(): { readonly first: Promise<NodeJS.Signals>; readonly now: AbortSignal } {
  const impatience = new AbortController();
  const first = new Promise<NodeJS.Signals>((resolve) => {
    let seen = 0;
    const take = (signal: NodeJS.Signals): void => {
      seen += 1;
      if (seen === 1) resolve(signal);
      else impatience.abort();
    };
    process.on("SIGTERM", take);
    process.on("SIGINT", take);
  });
  return { first, now: impatience.signal };
}
