import type { WalletState } from "@holdfast/protocol";
import { z } from "zod";
import { StepCall } from "./conversation-context.ts";
import { ForkPoint } from "./conversation-fork.ts";
import { conversationStatus } from "./conversation-status.ts";
import { presentFields } from "./present-fields.ts";
import { TaskEnd } from "./task-context.ts";
import { taskStatus } from "./task-status.ts";
import { balanceOf } from "./wallet-balance.ts";

/** Fields of an actor for lists and filters, readable without its key: never the content of a message or a question. */
export type ListFields = Readonly<Record<string, string | number | boolean>>;

const AgentName = z.looseObject({ name: z.string() });

// Only what the lists show: a whole context need not be checked again after every step.
const ListedConversation = z.looseObject({
  agent: AgentName,
  title: z.string().optional(),
  calls: z.array(StepCall),
  tags: z.record(z.string(), z.string()).optional(),
  parentTask: z.looseObject({ taskId: z.string() }).optional(),
  fork: ForkPoint.optional(),
  once: z.boolean().optional(),
  isDeleted: z.boolean().optional(),
  lastFailure: z.looseObject({ cause: z.string() }).optional(),
});
const ListedTask = z.looseObject({
  subagent: AgentName,
  description: z.string(),
  conversationStatus: z.enum(["running", "waiting", "held"]),
  end: TaskEnd.optional(),
  asks: z.string().optional(),
});
const ListedWait = z.looseObject({
  agent: z.string(),
  status: z.string(),
  outcome: z.string().optional(),
  assignee: z.string(),
  role: z.string().optional(),
  kind: z.string().optional(),
  conversationId: z.string(),
});

/**
 * List fields of an actor: `status` and `agent`, where there are such `title`, `waitingOn`, `cause`, `task`, `assignee`;
 * of a question also `outcome` once it is settled, `conversation`, `role` and `kind`; of a conversation also `tag.<name>`, `forkOf`
 * (`<key>@<revision>`), `aside` and `deleted`; of a wallet where its money is.
 *
 * @param type     actor type; other types than the three of this package have none
 * @param context  context of its snapshot
 * @param value    state value of its snapshot
 * @returns an empty object when there is nothing to say, e.g. for an actor whose input did not fit
 */
export function listFieldsOf(type: string, context: unknown, value: unknown): ListFields {
  if (type === "conversation") {
    const { data } = ListedConversation.safeParse(context);
    if (data === undefined) return {};
    const { status, waitingOn } = conversationStatus(value, data);
    const cause = status === "error" || status === "stuck" ? data.lastFailure?.cause : undefined;
    const { fork, tags = {} } = data;
    const fields = presentFields({
      status,
      agent: data.agent.name,
      title: data.title,
      waitingOn,
      cause,
      task: data.parentTask?.taskId,
      forkOf: fork && `${fork.conversation}@${fork.rev}`,
      ...Object.fromEntries(Object.entries(tags).map(([tag, value]) => [`tag.${tag}`, value])),
    });
    return {
      ...fields,
      ...(data.once === true && { aside: true }),
      ...(data.isDeleted === true && { deleted: true }),
    };
  }
  if (type === "task") {
    const { data } = ListedTask.safeParse(context);
    if (data === undefined) return {};
    const status = taskStatus(value, data);
    const waitingOn = status !== "waiting" ? undefined : data.asks === undefined ? "owner" : "parent";
    const title = data.description === "" ? undefined : data.description;
    return presentFields({ status, agent: data.subagent.name, title, waitingOn, cause: data.end?.cause });
  }
  if (type === "ownerWait") {
    const { data } = ListedWait.safeParse(context);
    if (data === undefined) return {};
    const { status, outcome, agent, assignee, role, kind, conversationId: conversation } = data;
    const waitingOn = status === "open" ? "owner" : undefined;
    return presentFields({ status, outcome, agent, assignee, role, kind, conversation, waitingOn });
  }
  if (type === "wallet") {
    return isListedWallet(context) ? walletFields(context) : {};
  }
  return {};
}

const ListedWallet = z.looseObject({ scope: z.string(), settled: z.looseObject({}), open: z.looseObject({}) });

/** Whether it is the context of a wallet: its many holds are not checked one by one after every step. */
const isListedWallet = (context: unknown): context is WalletState => ListedWallet.safeParse(context).success;

function walletFields(wallet: WalletState): ListFields {
  const { scope, limit, settled, fence, parent } = wallet;
  const { accounted, held, lent, unresolved } = balanceOf(wallet);
  return {
    status: fence === undefined ? "open" : "fenced",
    scope,
    ...presentFields({ parent }),
    spentMicroUsd: settled.microUsd,
    spentTokens: settled.tokens,
    unpricedCalls: settled.unpricedCalls,
    heldMicroUsd: held.microUsd,
    unresolvedMicroUsd: unresolved.microUsd,
    lentMicroUsd: lent.microUsd,
    accountedMicroUsd: accounted.microUsd,
    accountedTokens: accounted.tokens,
    ...(limit.microUsd !== undefined && { limitMicroUsd: limit.microUsd }),
    ...(limit.tokens !== undefined && { limitTokens: limit.tokens }),
  };
}
