import { z } from "zod";

/** A public event for services, CloudEvents 1.0 in JSON. */
export const LifecycleEvent = z.object({
  specversion: z.literal("1.0"),
  id: z.string(),
  source: z.string(),
  type: z.string(),
  subject: z.string(),
  time: z.string(),
  datacontenttype: z.literal("application/json"),
  data: z.record(z.string(), z.unknown()),
});
export type LifecycleEvent = z.infer<typeof LifecycleEvent>;
