import { ASK_OWNER, defineAgent, withDelegates } from "@holdfast/agents";
import type { Script } from "@holdfast/sim-model";

type Messages = Parameters<Script>[0]["messages"];

const lastUser = (messages: Messages): string => messages.findLast(({ role }) => role === "user")?.text ?? "";
const results = (messages: Messages): readonly string[] =>
  messages
    .slice(messages.findLastIndex(({ role }) => role === "user"))
    .flatMap(({ role, text }) => (role === "tool" ? [text] : []));

/** Models of the workload, by name. Each follows from its request alone. */
export const WORKLOAD_SCRIPTS: Readonly<Record<string, Script>> = {
  /** Delegates as many tasks as its prompt has words, then counts their answers. */
  fan: ({ messages }) => {
    const words = lastUser(messages).split(" ");
    const answers = results(messages);
    if (answers.length > 0) return { text: `${answers.length} of ${words.length} answered` };
    return { toolCalls: words.map((prompt) => ({ name: "task", arguments: { subagent: "echo", prompt } })) };
  },
  /** Asks a person, then says what they said. */
  asker: ({ messages }) => {
    const [answer] = results(messages);
    if (answer !== undefined) return { text: answer };
    return { toolCalls: [{ name: "ask_owner", arguments: { question: "Go on?", options: ["yes", "no"] } }] };
  },
  /** Takes so long that there is time to interrupt it. */
  slow: ({ messages }) => ({ delayMs: 4000, text: lastUser(messages) }),
};

const echo = defineAgent({ name: "echo", model: "echo" });

/** Inputs of conversations. */
export const WORKLOAD_INPUTS = {
  chat: { agent: echo },
  fan: { agent: withDelegates(defineAgent({ name: "fan", model: "fan" }), [echo]), agents: { echo } },
  ask: { agent: defineAgent({ name: "asker", model: "asker", tools: [ASK_OWNER] }) },
  slow: { agent: defineAgent({ name: "slow", model: "slow" }) },
} as const;
