import { WalletScope } from "@holdfast/protocol";
import { z } from "zod";

/** Why the last model call got no money. */
export const BudgetRefusal = z.object({
  scope: WalletScope,
  wallet: z.string(),
  /** The fence that stands in the way, where there is one. */
  fence: z.string().optional(),
  code: z.string(),
  message: z.string(),
});
export type BudgetRefusal = Readonly<z.infer<typeof BudgetRefusal>>;
