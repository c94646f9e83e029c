import { Namespace, RuntimeFault, Seat } from "@holdfast/protocol";
import { EngineContract } from "@holdfast/runner";
import { z } from "zod";

const json = <Schema extends z.ZodType>(schema: Schema) =>
  z
    .string()
    .transform((text, context) => {
      try {
        return JSON.parse(text) as unknown;
      } catch {
        context.addIssue({ code: "custom", message: "JSON expected" });
        return z.NEVER;
      }
    })
    .pipe(schema);

/** What a runner is told by its environment. */
const Settings = z.object({
  RUNNER_NATS_URL: z.string().min(1),
  RUNNER_NATS_PASSWORD: z.string().min(1),
  RUNNER_NAMESPACE: Namespace,
  RUNNER_SEAT: Seat,
  RUNNER_FOLDER: z.string().min(1),
  RUNNER_TOKEN_FILE: z.string().min(1),
  RUNNER_ENGINE: json(z.array(z.string().min(1)).min(1)),
  RUNNER_CONTRACT: json(EngineContract),
});
export type Settings = z.infer<typeof Settings>;

/** @throws RuntimeFault HF-7001 with the names of the variables that are missing or do not fit; values are not shown */
export function parseSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const parsed = Settings.safeParse(environment);
  if (parsed.success) return parsed.data;
  const names = [...new Set(parsed.error.issues.map(({ path }) => String(path[0])))].join(", ");
  throw new RuntimeFault(
    "HF-7001",
    `Runner: these variables are missing or do not fit: ${names}. Set them; see the README.`,
    {
      facts: { names },
    },
  );
}
