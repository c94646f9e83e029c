/** This process as others see it: its id, and when it began, Unix ms. */
export const thisProcess = (): { readonly pid: number; readonly startedAtMs: number } => ({
  pid: process.pid,
  startedAtMs: Math.round(performance.timeOrigin),
});
