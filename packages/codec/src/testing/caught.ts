import { RuntimeFault } from "@holdfast/protocol";

/** The fault that `act` throws. Anything else it does fails the test. */
export function caught(act: () => unknown): RuntimeFault {
  let result: unknown;
  try {
    result = act();
  } catch (error) {
    if (error instanceof RuntimeFault) return error;
    throw new Error("threw something other than a RuntimeFault", { cause: error });
  }
  throw new Error(`threw nothing and returned ${typeof result}`);
}
