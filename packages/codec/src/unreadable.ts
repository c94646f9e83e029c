import type { RuntimeFault } from "@holdfast/protocol";

/**
 * Makes the fault for bytes that cannot be read; the caller decides whether they are a damaged record or refused input.
 * `reason` never quotes content, which may be confidential.
 */
export type Unreadable = (reason: string) => RuntimeFault;
