import type { JobContext, JobDefinition } from "../actor-definition.ts";

/** One attempt of a job that a node began. It ends when the test says so. */
export interface DeskJob {
  readonly src: string;
  readonly input: unknown;
  readonly context: JobContext;
  readonly finish: (output: unknown) => void;
  readonly fail: (error: unknown) => void;
}

/** Where the jobs of all nodes of a test arrive: the world outside. */
export class JobDesk {
  readonly begun: DeskJob[] = [];

  /** Attempts of a source, in the order in which they began; optionally those of one node. */
  of(src: string, node?: string): readonly DeskJob[] {
    return this.begun.filter((job) => job.src === src && (node === undefined || job.context.node === node));
  }

  job(src: string, definition: Omit<JobDefinition, "run">): JobDefinition {
    return {
      ...definition,
      run: (input, context) => {
        const { promise, resolve, reject } = Promise.withResolvers<unknown>();
        this.begun.push({ src, input, context, finish: resolve, fail: reject });
        return promise;
      },
    };
  }
}
