import type { ReserveMoney } from "@holdfast/agents";
import { HoldfastClient, WalletTeller } from "@holdfast/client";
import { FLEET_PRINCIPAL } from "@holdfast/protocol";
import type { NodeContext } from "holdfast";
import { randomBytes } from "node:crypto";

/** Where the model calls of this node are paid from. Nothing is opened before the first call that somebody limits. */
export function createNodeMoney({ link, codec }: NodeContext, namespace: string): ReserveMoney {
  const randomHex = (bytes: number): string => randomBytes(bytes).toString("hex");
  const open = async (): Promise<WalletTeller> => {
    const client = await HoldfastClient.open({ link, codec, namespace, principal: FLEET_PRINCIPAL, randomHex });
    return new WalletTeller(client, randomHex);
  };
  let opened: Promise<WalletTeller> | undefined;
  return async ({ payer, ...request }) => {
    opened ??= open().catch((error: unknown) => {
      opened = undefined; // the next call asks again
      throw error;
    });
    return (await opened).reserve({ ...request, payer });
  };
}
