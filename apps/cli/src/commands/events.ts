import type { LifecycleEvent } from "@holdfast/protocol";
import type { Command } from "commander";
import { withClient, type CommandContext, type GlobalOptions } from "./command-context.ts";
import { untilStopped } from "./until-stopped.ts";

interface EventsCommandOptions extends GlobalOptions {
  readonly from?: string;
  readonly follow?: boolean;
}

/** `holdfast events` */
export function eventsCommand(program: Command, context: CommandContext): void {
  program
    .command("events")
    .description("public events of tasks, conversations and waits, each once, in stored order")
    .argument("<subject>", 'what to hear, e.g. "task.*.*.completed", "conversation.>", ">"')
    .option("--from <cursor>", "a cursor of an earlier event, first, or now", "first")
    .option("--follow", "wait for more at the end")
    .option("--json")
    .action((subject: string, { from, follow = false, ...options }: EventsCommandOptions) =>
      withClient(context, options, "client", async ({ holdfast }, output) => {
        for await (const received of holdfast.events({ subject, from, follow, signal: untilStopped() }))
          output.result(received, `${eventText(received.event)}  ${received.cursor}`);
      }),
    );
}

function eventText({ time, type, data }: LifecycleEvent): string {
  const facts = Object.entries(data).map(([name, value]) => `${name}=${String(value)}`);
  return [time, type, ...facts].join("  ");
}
