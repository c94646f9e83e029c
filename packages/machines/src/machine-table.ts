import type { ClosePolicy, CrashPolicy } from "@holdfast/protocol";
import type { AnyStateMachine } from "xstate";
import type { z } from "zod";
import { ConversationEvent } from "./conversation-event.ts";
import { ConversationInput } from "./conversation-input.ts";
import { conversationMachine } from "./conversation.machine.ts";
import { OwnerWaitEvent } from "./owner-wait-event.ts";
import { OwnerWaitInput } from "./owner-wait-input.ts";
import { ownerWaitMachine } from "./owner-wait.machine.ts";
import { TaskEvent } from "./task-event.ts";
import { TaskInput } from "./task-input.ts";
import { taskMachine } from "./task.machine.ts";
import { WalletEvent, WalletInput } from "./wallet-event.ts";
import { walletMachine } from "./wallet.machine.ts";

/** A machine and what an app has to know to run it durably. */
export interface MachineEntry {
  /** Actor type. */
  readonly type: string;
  readonly machine: AnyStateMachine;
  /** What it may be started with. */
  readonly input: z.ZodType;
  /** What may be sent to it from outside, without what the shell adds. */
  readonly outsideEvent: z.ZodType<{ readonly type: string }>;
  /** Child source → actor type. */
  readonly childActors: Readonly<Record<string, string>>;
  /** Child source → what becomes of the job when its runner dies. */
  readonly jobs: Readonly<Record<string, CrashPolicy>>;
  /** Child sources that live only as long as their process; a node may replace them. */
  readonly hosts: readonly string[];
  /** Child source → what becomes of the child when its parent ends first. */
  readonly closePolicies: Readonly<Record<string, ClosePolicy>>;
}

/** Every machine of this package. */
export const MACHINES: readonly MachineEntry[] = [
  {
    type: "conversation",
    machine: conversationMachine,
    input: ConversationInput,
    outsideEvent: ConversationEvent,
    childActors: { task: "task", "task.await": "task", "task.detach": "task", ownerWait: "ownerWait" },
    jobs: {
      // Asking again costs money and changes nothing outside.
      "model.generate": "idempotent",
      "tool.run.idempotent": "idempotent",
      "tool.run.dedupeKey": "dedupeKey",
      "tool.run.unsafe": "unsafe",
    },
    hosts: [],
    closePolicies: { task: "cancel", "task.await": "await", "task.detach": "detach", ownerWait: "cancel" },
  },
  {
    type: "task",
    machine: taskMachine,
    input: TaskInput,
    outsideEvent: TaskEvent,
    childActors: { conversation: "conversation" },
    jobs: {},
    hosts: ["slot"],
    closePolicies: { conversation: "cancel" },
  },
  {
    type: "ownerWait",
    machine: ownerWaitMachine,
    input: OwnerWaitInput,
    outsideEvent: OwnerWaitEvent,
    childActors: {},
    jobs: {},
    hosts: [],
    closePolicies: {},
  },
  {
    type: "wallet",
    machine: walletMachine,
    input: WalletInput,
    outsideEvent: WalletEvent,
    childActors: {},
    jobs: {},
    hosts: [],
    closePolicies: {},
  },
];
