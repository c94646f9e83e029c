/** Aborts when a person or whoever reads the output has enough. */
export function untilStopped(): AbortSignal {
  const enough = new AbortController();
  const stop = (): void => enough.abort();
  process.once("SIGINT", stop).once("SIGTERM", stop);
  process.stdout.once("error", stop); // the next program of a pipe has ended
  return enough.signal;
}
