import { ClosePolicy, TaskStatus, TERMINAL_TASK_STATUSES } from "@holdfast/protocol";
import { z } from "zod";
import { ReportedTask } from "./task-report.ts";

// What a conversation knows of the tasks that it may still talk to.
//   B1 an entry is named by the child id of its task: unique in the life of the conversation, never used again
//   B2 order of entries is order of starts; turns are given in that order
//   B3 what is open counts, whether or not it can be named
//   B4 a task that has to wait for its turn was started nevertheless: its own record says `queued`, and survives

/** A task as the conversation that delegated it knows it. */
export const TaskEntry = z.object({
  childId: z.string(),
  agent: z.string(),
  status: TaskStatus,
  /** Follow-ups that were sent to it. */
  followUps: z.number(),
  /** It will never take another one. */
  isOver: z.boolean(),
  /** It waits for a word from here before it starts. */
  isHeld: z.boolean(),
  /** It waits for an answer to a question it has asked. */
  isAsking: z.boolean(),
  onClose: ClosePolicy,
  /** What it touches. Two that touch the same thing run one after the other, unless both share. */
  resources: z.array(z.string()),
  isSharing: z.boolean(),
  /** Child id of the call that started it as one of a group. */
  group: z.string().optional(),
  /** It takes no follow-ups and nobody can name it: it is here until it has ended, because it counts. */
  isPlain: z.boolean().optional(),
  /** How its last run ended, or what it asks. Only where the transcript is read; a context does not keep it. */
  report: ReportedTask.optional(),
});
export type TaskEntry = Readonly<z.infer<typeof TaskEntry>>;

export type TaskBook = readonly TaskEntry[];

/** Entries a conversation keeps. Beyond it the oldest task that has ended is let go. */
export const MAX_KNOWN_TASKS = 256;

const hasEnded = ({ status }: TaskEntry): boolean => TERMINAL_TASK_STATUSES.some((terminal) => terminal === status);

/** Tasks that have not ended. */
export const openTasks = (book: TaskBook): readonly TaskEntry[] =>
  book.filter((entry) => !entry.isOver && !hasEnded(entry));

/** Tasks that the model may name. */
export const nameableTasks = (book: TaskBook): TaskBook => book.filter((entry) => entry.isPlain !== true);

/** The book without what is in it only as long as it is open. */
export const withoutPastPlain = (book: TaskBook): TaskBook =>
  book.filter(({ isPlain, isOver }) => !(isPlain && isOver));

export const taskNamed = (book: TaskBook, childId: string): TaskEntry | undefined =>
  book.find((entry) => entry.childId === childId);

export const withEntry = (book: TaskBook, childId: string, changes: Partial<TaskEntry>): TaskBook =>
  book.map((entry) => (entry.childId === childId ? { ...entry, ...changes } : entry));

/** The book as a context keeps it. */
export const withoutReports = (book: TaskBook): TaskEntry[] => book.map(({ report: _report, ...entry }) => entry);

/**
 * Makes room for one more entry.
 *
 * @returns the book, and the task that is let go when there was no room
 */
export function roomIn(book: TaskBook): { readonly book: TaskBook; readonly released: readonly string[] } {
  if (book.length < MAX_KNOWN_TASKS) return { book, released: [] };
  const oldest = book.find(hasEnded);
  if (oldest === undefined) return { book, released: [] };
  return { book: book.filter((entry) => entry !== oldest), released: oldest.isOver ? [] : [oldest.childId] };
}

const isInTheWay = (one: TaskEntry, other: TaskEntry): boolean =>
  !(one.isSharing && other.isSharing) && one.resources.some((resource) => other.resources.includes(resource));

/**
 * Gives turns to tasks that wait for theirs (B2): one that touches what an earlier open task touches goes on waiting, and so does
 * everybody when `maxRunning` run; one that asks does not count, who could answer it may be waiting for its turn. Nobody waits behind a task
 * that waits for something else.
 *
 * @returns the book, and the tasks whose turn it is
 */
export function withTurns(
  book: TaskBook,
  maxRunning: number,
): { readonly book: TaskBook; readonly proceed: readonly string[] } {
  const proceed = new Set<string>();
  const open = openTasks(book);
  let running = open.filter(({ isHeld, isAsking }) => !isHeld && !isAsking).length;
  open.forEach((entry, index) => {
    if (!entry.isHeld || running >= maxRunning) return;
    if (open.slice(0, index).some((earlier) => isInTheWay(earlier, entry))) return;
    proceed.add(entry.childId);
    running += 1;
  });
  if (proceed.size === 0) return { book, proceed: [] };
  return {
    book: book.map((entry) => (proceed.has(entry.childId) ? { ...entry, isHeld: false, status: "running" } : entry)),
    proceed: [...proceed],
  };
}
