import { DrainRequest, RuntimeFault } from "@holdfast/protocol";

/**
 * Why a node ends although its process did not ask for it. `replaced`: another process lives under its name, and it does nothing any more.
 * `drainAsked`: an operator asked; it is leaving as planned. `restartAsked`: the same, and its process is to end with PLANNED_EXIT_CODE.
 */
export type NodeEnding =
  | { readonly kind: "replaced"; readonly fault: RuntimeFault }
  | { readonly kind: "drainAsked"; readonly by: string }
  | { readonly kind: "restartAsked"; readonly by: string; readonly id: string };

export const replacedFault = (node: string): RuntimeFault =>
  new RuntimeFault(
    "HF-3004",
    `Node ${node}: another process took this name while this one was silent, and owns what this one owned. This one has ended its work. Give one of them its own HOLDFAST_NODE.`,
    { facts: { node } },
  );

/** @returns undefined when nobody can read it */
export function readDrainRequest(bytes: Uint8Array): DrainRequest | undefined {
  try {
    return DrainRequest.safeParse(JSON.parse(new TextDecoder().decode(bytes))).data;
  } catch {
    return undefined; // removed, or not ours
  }
}
