import { parseConfig } from "@holdfast/process";
import { Command } from "commander";
import { agentCommands } from "./commands/agent.ts";
import { budgetCommands } from "./commands/budget.ts";
import { conversationCommands } from "./commands/conversation.ts";
import { demoCommand } from "./commands/demo.ts";
import { eventsCommand } from "./commands/events.ts";
import { familyCommands } from "./commands/family.ts";
import { fleetCommand } from "./commands/fleet.ts";
import { heldCommands } from "./commands/held.ts";
import { nodeCommands } from "./commands/node.ts";
import { operatorCommands } from "./commands/operator.ts";
import { panicCommands } from "./commands/panic.ts";
import { replayCommand } from "./commands/replay.ts";
import { renewCommand } from "./commands/renew.ts";
import { restartCommands } from "./commands/restart.ts";
import { superviseCommand } from "./commands/supervise.ts";
import { stuckCommands } from "./commands/stuck.ts";
import { taskCommands } from "./commands/task.ts";
import { waitCommands } from "./commands/wait.ts";

const program = new Command("holdfast")
  .description("durable actors for agents, on NATS JetStream")
  .showHelpAfterError();
const context = {
  config: () => parseConfig(process.env),
  environment: () => process.env,
  systemEnv: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" },
};
demoCommand(program, context);
agentCommands(program, context);
budgetCommands(program, context);
conversationCommands(program, context);
taskCommands(program, context);
waitCommands(program, context);
eventsCommand(program, context);
familyCommands(program, context);
fleetCommand(program, context);
nodeCommands(program, context);
operatorCommands(program, context);
panicCommands(program, context);
heldCommands(program, context);
restartCommands(program, context);
superviseCommand(program, context);
replayCommand(program, context);
renewCommand(program, context);
stuckCommands(program, context);
await program.parseAsync();
