import { z } from "zod";

/**
 * What a client was told about one command. One JSON object per line of the file that a load generator writes; a line must be written
 * after the answer and before the next command that depends on it. The same command may have several lines: every answer counts.
 */
export const AcceptedCommand = z.object({
  /** Key of the actor, `<partition>.<type>.<id>`. */
  key: z.string(),
  /**
   * Id of the message: the Msg-Id under which it was published, which the journal names as the cause of its macrostep. A client that sends
   * under an idempotency key publishes under the hash of (target, principal, key): `scopedMessageId` of packages/jetstream.
   */
  messageId: z.string(),
  /**
   * `applied`: the actor answered that its macrostep is stored. `accepted`: the stream acknowledged it, no answer came.
   * `ignored`, `refused`: the actor answered that it changed nothing, or that another copy did.
   */
  outcome: z.enum(["applied", "accepted", "ignored", "refused"]),
  /** Revision of the answer; only with `applied`. */
  rev: z.number().optional(),
  /** Of an `accepted` one: it may have changed nothing. Default: it must be applied by now. */
  mayBeIgnored: z.boolean().optional(),
});
export type AcceptedCommand = z.infer<typeof AcceptedCommand>;

/**
 * Reads the file of a load generator. A last line without a line feed was cut off by the death of its writer and does not count.
 * @throws Error naming the line that is none
 */
export function parseAcceptedCommands(text: string): readonly AcceptedCommand[] {
  return text
    .split("\n")
    .slice(0, -1)
    .map((line, index) => {
      try {
        return AcceptedCommand.parse(JSON.parse(line));
      } catch (cause) {
        throw new Error(`Line ${index + 1} of the accepted commands: it is not one. Judge nothing with this file.`, {
          cause,
        });
      }
    });
}
