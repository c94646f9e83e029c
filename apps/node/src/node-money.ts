import type { ReserveMoney } from "@holdfast/agents";
import { HoldfastClient, WalletTeller } from "@holdfast/client";
import { FLEET_PRINCIPAL } from "@holdfast/protocol";
import type { NodeContext } from "holdfast";
import { randomBytes } from "node:crypto";

/** Where the model calls of this node are paid from. */
export interface NodeMoney {
  readonly reserve: ReserveMoney;
  /** @throws RuntimeFault when nobody can say */
  readonly isFenced: (wallet: string) => Promise<boolean>;
}

/** Nothing is opened before the first call that somebody limits. */
export function createNodeMoney({ link, codec }: NodeContext, namespace: string): NodeMoney {
  const randomHex = (bytes: number): string => randomBytes(bytes).toString("hex");
  const open = async (): Promise<WalletTeller> => {
    const client = await HoldfastClient.open({ link, codec, namespace, principal: FLEET_PRINCIPAL, randomHex });
    return new WalletTeller(client, randomHex);
  };
  let opened: Promise<WalletTeller> | undefined;
  const teller = (): Promise<WalletTeller> =>
    (opened ??= open().catch((error: unknown) => {
      opened = undefined; // the next call asks again
      throw error;
    }));
  return {
    reserve: async ({ payer, ...request }) => (await teller()).reserve({ ...request, payer }),
    isFenced: async (wallet) => (await teller()).isFenced(wallet),
  };
}
