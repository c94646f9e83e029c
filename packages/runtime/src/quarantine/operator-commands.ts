import {
  AuditEntry,
  OperatorCommand,
  parseActorKey,
  RuntimeFault,
  toPlainFault,
  type CommandOutcome,
} from "@holdfast/protocol";
import type { NodeServices } from "../cell-host.ts";
import type { PartitionOwner } from "../partition-owner.ts";
import type { FleetRegistry, FleetValue } from "../ports/index.ts";
import { cancelHeld } from "../holds/cancel-held.ts";
import { withoutLink } from "../parked-message.ts";
import { repeatEvery } from "../repeated-work.ts";
import { markOf } from "./quarantine.ts";
import { retryCell } from "./retry-cell.ts";

export interface OperatorCommandsOptions {
  readonly services: NodeServices;
  readonly bucket: FleetRegistry;
  /** Partitions of this node. */
  readonly owners: ReadonlyMap<string, PartitionOwner>;
}

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/**
 * Carries out what operators want of stuck actors.
 *
 * Owns: commands that wait. Does not own: who may give them (NATS permissions guard their keys).
 *   O1 a command is carried out by the owner of its actor, and waits in the bucket while there is none
 *   O2 it is in the audit stream before anything is done
 *   O3 without an outcome it is carried out again: doing so twice changes nothing more
 *   O4 what may take this node down has its outcome before it is carried out: the next node must not do it again
 */
export class OperatorCommands {
  readonly #options: OperatorCommandsOptions;
  readonly #waiting = new Map<string, OperatorCommand>();
  readonly #running = new Set<string>();
  #cancel: (() => void) | undefined;
  #watch: { stop(): Promise<void> } | undefined;

  constructor(options: OperatorCommandsOptions) {
    this.#options = options;
  }

  /** Resolves when all that is set aside, and all commands that wait, are known. */
  async start(): Promise<void> {
    await this.#options.services.quarantine.start();
    this.#watch = await this.#options.bucket.watch((value) => this.#seen(value), "command.>");
    const { clock, settings, telemetry } = this.#options.services;
    const failed = (reason: string): void => telemetry.warn("operator.commands-failed", { reason });
    this.#cancel = repeatEvery(clock, settings.heartbeatMs, () => this.runWaiting(), failed);
  }

  async stop(): Promise<void> {
    this.#cancel?.();
    await this.#watch?.stop();
    await this.#options.services.quarantine.stop();
  }

  /** What an operator parked must not be loaded by the takeover of its partition: it may be what takes nodes down. */
  async beforeTakeUp(partition: string): Promise<void> {
    const parks = [...this.#waiting.values()].filter(({ verb, key }) => verb === "park" && isOf(key, partition));
    for (const command of parks) await this.#run(command);
  }

  /** Carries out what waits for partitions that this node has taken up meanwhile. */
  async runWaiting(): Promise<void> {
    const { owners } = this.#options;
    const mine = [...this.#waiting.values()].filter(
      ({ key }) => owners.get(parseActorKey(key).partition)?.isCaughtUp === true,
    );
    for (const command of mine) await this.#run(command);
  }

  #seen({ key, bytes }: FleetValue): void {
    const command = bytes.length === 0 ? undefined : tryCommand(bytes);
    if (command === undefined || key !== `command.${command.key}` || command.outcome !== undefined) {
      this.#waiting.delete(key);
      return;
    }
    this.#waiting.set(key, command);
    void this.runWaiting().catch(() => undefined); // tried again with the next heartbeat
  }

  async #run(command: OperatorCommand): Promise<void> {
    const name = `command.${command.key}`;
    if (this.#running.has(name)) return;
    this.#running.add(name);
    try {
      if (!(await this.#audited(command))) return; // O2
      if (this.#isDangerous(command) && !(await this.#told(command, this.#done("what took nodes down is tried again"))))
        return; // O4
      const outcome = await this.#carryOut(command);
      if ((await this.#told(command, outcome)) && this.#waiting.get(name)?.token === command.token)
        this.#waiting.delete(name);
    } catch (error) {
      const { code, message: reason } = toPlainFault(error, "HF-4001");
      this.#options.services.telemetry.warn("operator.command-failed", { key: command.key, code, reason });
    } finally {
      this.#running.delete(name);
    }
  }

  async #told(command: OperatorCommand, outcome: CommandOutcome): Promise<boolean> {
    const written = await this.#options.bucket.put(`command.${command.key}`, encode({ ...command, outcome }));
    return written !== undefined;
  }

  #isDangerous({ verb, key }: OperatorCommand): boolean {
    const { quarantine } = this.#options.services;
    const entries = [quarantine.actor(key), ...quarantine.messagesOf(key)];
    return verb === "retry" && entries.some((entry) => entry?.code === "HF-3102");
  }

  async #audited({ token, verb, key, messageId, by }: OperatorCommand): Promise<boolean> {
    const { journal, incarnation, telemetry, time } = this.#options.services;
    const entry: AuditEntry = {
      v: 1,
      id: token,
      verb,
      key,
      ...(messageId !== undefined && { messageId }),
      by,
      node: incarnation,
      atMs: time.nowMs(),
    };
    const outcome = await journal.audit(verb, encode(AuditEntry.parse(entry)), `${token}:${incarnation}`);
    telemetry.info("operator.command", { key, verb, by, audited: outcome.kind });
    return outcome.kind === "accepted";
  }

  #carryOut(command: OperatorCommand): Promise<CommandOutcome> {
    switch (command.verb) {
      case "park":
        return this.#park(command);
      case "retry":
        return this.#retry(command);
      case "skip":
        return this.#skip(command);
      case "resume":
        return this.#ifHeld(command, () => this.#retry(command));
      case "cancel":
        return this.#ifHeld(command, (owner) => this.#cancelPending(owner, command));
    }
  }

  async #park({ key, by }: OperatorCommand): Promise<CommandOutcome> {
    const { quarantine, records } = this.#options.services;
    if ((await records.load(key)) === undefined) return this.#refused("HF-3001", `${key}: there is no such actor.`);
    if (quarantine.actor(key)?.code !== "HF-3104") {
      const reason = `parked by ${by}`;
      const attempts = [quarantine.attempt("HF-3104", reason)];
      const failure = { code: "HF-3104", reason, state: "parked", attempts } as const;
      if (!(await quarantine.setActorAside(key, failure, { by }))) throw notStored(key);
    }
    const owner = this.#ownerOf(key);
    if (owner !== undefined) await retryCell(owner, key); // it finds that it is held back, and says so
    return this.#done("parked: nothing of it runs, its messages wait");
  }

  async #retry({ key, messageId }: OperatorCommand): Promise<CommandOutcome> {
    const { quarantine } = this.#options.services;
    const owner = this.#ownerOf(key);
    if (owner?.cellOf(key) === undefined) return this.#unserved(key);
    const wanted = quarantine
      .messagesOf(key)
      .filter((entry) => messageId === undefined || entry.messageId === messageId)
      .flatMap(({ mark }) => mark ?? []);
    if (messageId !== undefined && wanted.length === 0)
      return this.#refused("HF-3105", `${key}: message ${messageId} is not set aside. "holdfast stuck" lists what is.`);
    await quarantine.remove(key);
    const offered = await this.#restore(key, wanted);
    await retryCell(owner, key);
    const actor = quarantine.actor(key);
    const message = wanted.flatMap((mark) => quarantine.message(key, mark) ?? [])[0];
    const left = actor ?? message;
    if (left !== undefined) return this.#refused(left.code, left.reason);
    return this.#done(`loaded anew, ${offered} messages offered again`);
  }

  /** Held is what a stop of the fleet cut off, or what is not to go on by itself after a crash. */
  #ifHeld({ key }: OperatorCommand, carryOut: (owner: PartitionOwner) => Promise<CommandOutcome>) {
    const owner = this.#ownerOf(key);
    if (owner?.cellOf(key) === undefined) return Promise.resolve(this.#unserved(key));
    if (this.#options.services.quarantine.actor(key)?.code === "HF-3106") return carryOut(owner);
    return Promise.resolve(this.#refused("HF-3105", `${key} is not held. "holdfast held list" lists what is.`));
  }

  async #cancelPending(owner: PartitionOwner, { key, by }: OperatorCommand): Promise<CommandOutcome> {
    const jobs = await cancelHeld(this.#options.services, owner, key, `cancelled by ${by} while it was held`).catch(
      (error: unknown) => {
        if (error instanceof RuntimeFault && error.next !== "retry") return error; // its record cannot be read
        throw error;
      },
    );
    if (jobs instanceof RuntimeFault) return this.#refused(jobs.code, jobs.message);
    if (jobs > 0) return this.#done(`${jobs} pending jobs ended as cancelled, it goes on from there`);
    return this.#refused("HF-3105", `${key} has no pending job. Resume it, then end it as one of its kind is ended.`);
  }

  async #skip({ key, messageId }: OperatorCommand): Promise<CommandOutcome> {
    const { quarantine } = this.#options.services;
    const owner = this.#ownerOf(key);
    if (owner?.cellOf(key) === undefined) return this.#unserved(key);
    const held = quarantine.actor(key);
    if (held !== undefined)
      return this.#refused(held.code, `${key} is set aside as a whole: ${held.reason}. Retry it first.`);
    const entries = quarantine.messagesOf(key);
    const entry = messageId === undefined ? entries[0] : entries.find((each) => each.messageId === messageId);
    if (entry === undefined && messageId === undefined)
      return this.#refused(
        "HF-3105",
        `${key}: no message of it is quarantined. Name the one that waits with --message.`,
      );
    const mark = entry?.mark ?? markOf({ messageId: messageId ?? "", bytes: new Uint8Array() });
    await this.#restore(key, entry === undefined ? [] : [mark]);
    const { isSkipped } = await retryCell(owner, key, mark);
    if (!isSkipped)
      return this.#refused(
        "HF-3105",
        `${key}: no message ${messageId ?? ""} is set aside. "holdfast stuck" lists what is.`,
      );
    await quarantine.remove(key, mark);
    return this.#done(`message ${entry?.messageId ?? messageId ?? ""} passed over`);
  }

  /** Puts messages that were taken out back among those that wait. @returns how many */
  async #restore(key: string, marks: readonly string[]): Promise<number> {
    const { quarantine, log, random, codec } = this.#options.services;
    let restored = 0;
    for (const mark of marks) {
      const kept = await quarantine.bytesOf(key, mark);
      if (kept === undefined) continue; // it waits in the parked stream anyway
      const bytes = quarantine.message(key, mark)?.code === "HF-2004" ? withoutLink(codec, kept) : kept;
      const outcome = await log.publish(
        "parked",
        key,
        bytes,
        `retry:${mark}:${random.hex(8)}`,
        quarantine.message(key, mark)?.blobs,
      );
      if (outcome.kind !== "accepted") throw notStored(key);
      restored += 1;
      this.#ownerOf(key)?.parked(key);
    }
    return restored;
  }

  #ownerOf(key: string): PartitionOwner | undefined {
    return this.#options.owners.get(parseActorKey(key).partition);
  }

  #unserved(key: string): CommandOutcome {
    return this.#refused("HF-3105", `${key}: this node does not serve its type. Start one that does.`);
  }

  #done(what: string): CommandOutcome {
    return { kind: "done", node: this.#options.services.incarnation, what };
  }

  #refused(code: string, reason: string): CommandOutcome {
    return { kind: "refused", node: this.#options.services.incarnation, code, reason };
  }
}

const notStored = (key: string): RuntimeFault =>
  new RuntimeFault("HF-4008", `Command for ${key}: what it changes was not acknowledged. It is tried again.`);

const isOf = (key: string, partition: string): boolean => parseActorKey(key).partition === partition;

function tryCommand(bytes: Uint8Array): OperatorCommand | undefined {
  try {
    return OperatorCommand.safeParse(JSON.parse(new TextDecoder().decode(bytes))).data;
  } catch {
    return undefined; // nobody's command
  }
}
