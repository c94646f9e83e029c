import { z } from "zod";

/** Said in every opening and compared for equality: a host and a runner of different builds do not negotiate. */
export const RUNNER_PROTOCOL = "holdfast.runner.v1";

const Word = z.string().min(1).max(128);

/** What a host needs of the engine in a sandbox. */
export const EngineRequirements = z.strictObject({
  engine: Word,
  /** Keys of options the engine must understand. */
  options: z.array(Word).max(64),
  permissionMode: Word,
});
export type EngineRequirements = z.infer<typeof EngineRequirements>;

/** What the image of a sandbox really has. */
export const EngineContract = z.strictObject({
  engine: Word,
  options: z.array(Word).max(64),
  permissionModes: z.array(Word).max(64),
});
export type EngineContract = z.infer<typeof EngineContract>;

/**
 * Every point in which an image does not have what is required; empty when it fits. Both sides ask: the runner before it starts anything, the
 * host of the contract it was answered.
 */
export function contractMismatches(required: EngineRequirements, found: EngineContract): readonly string[] {
  const mismatches: string[] = [];
  if (required.engine !== found.engine) mismatches.push(`engine ${required.engine} required, ${found.engine} found`);
  for (const option of required.options)
    if (!found.options.includes(option)) mismatches.push(`option ${option} required, not understood`);
  if (!found.permissionModes.includes(required.permissionMode))
    mismatches.push(`permission mode ${required.permissionMode} required, not offered`);
  return mismatches;
}
