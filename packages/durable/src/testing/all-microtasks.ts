/** Two turns of the event loop: every promise that can settle by itself has. */
export async function allMicrotasks(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise<void>((resolve) => void setImmediate(resolve));
}
