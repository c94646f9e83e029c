import { strict as assert } from "node:assert";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "./holdfast-command.ts";
import type { RowStage } from "./row-run.ts";

/** A folder that defines agents, and the command as somebody runs it who works with that folder. */
export class AgentFiles implements AsyncDisposable {
  readonly #folder: string;
  readonly #stage: RowStage;

  private constructor(folder: string, stage: RowStage) {
    this.#folder = folder;
    this.#stage = stage;
  }

  static async open(stage: RowStage): Promise<AgentFiles> {
    return new AgentFiles(await mkdtemp(join(tmpdir(), "holdfast-agents-")), stage);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.#folder, { recursive: true });
  }

  /** Defines an agent, or defines it otherwise. */
  async write(name: string, model: string, delegates: readonly string[] = []): Promise<void> {
    const head = `model: ${model}\ndelegates: [${delegates.join(", ")}]\nresumable: false`;
    await writeFile(join(this.#folder, `${name}.md`), `---\n${head}\n---\n\nYou are ${name}.\n`);
  }

  /** @returns what the command printed; it has to succeed */
  async holdfast(...args: readonly string[]): Promise<unknown> {
    const { cluster, fleet } = this.#stage;
    const { url, user, password } = cluster.nats;
    const ran = await runCommand([...args, "--json"], {
      env: {
        HOLDFAST_NATS_URL: url,
        HOLDFAST_NATS_USER: user,
        HOLDFAST_NATS_PASSWORD: password,
        HOLDFAST_NAMESPACE: fleet.namespace,
        HOLDFAST_AGENTS: this.#folder,
      },
    });
    assert.equal(ran.code, 0, ran.stderr);
    return ran.json;
  }
}
