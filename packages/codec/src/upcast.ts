import { RuntimeFault } from "@holdfast/protocol";

/** Format → what turns a value of that format into one of the next. The value is whatever the older build stored. */
export type Upcasters = Readonly<Record<number, (old: unknown) => unknown>>;

/** One chain for headers, which are read alone, and one for records. */
export interface FormatUpcasters {
  readonly header: Upcasters;
  readonly record: Upcasters;
}

/** Upcasters of every released format. Format 1 is the first. */
export const FORMAT_UPCASTERS: FormatUpcasters = { header: {}, record: {} };

/**
 * Brings a value from the format it was stored in to the one of this build, one step at a time.
 *
 * @throws RuntimeFault HF-2002 when a step is missing (that format was never released) or fails
 */
export function upcast(value: unknown, from: number, to: number, upcasters: Upcasters): unknown {
  let current = value;
  for (let format = from; format < to; format += 1) {
    const step = Object.hasOwn(upcasters, format) ? upcasters[format] : undefined;
    if (step === undefined) throw missing(format, to);
    current = run(step, current, format);
  }
  return current;
}

function run(step: (old: unknown) => unknown, value: unknown, format: number): unknown {
  try {
    return step(value);
  } catch (cause) {
    throw new RuntimeFault(
      "HF-2002",
      `Stored record: its format ${format} could not be brought to format ${format + 1}. Report it with the record's bytes; nothing runs from them until then.`,
      { facts: { format }, cause },
    );
  }
}

const missing = (format: number, to: number): RuntimeFault =>
  new RuntimeFault(
    "HF-2002",
    `Stored record: format ${format} found, which this build (format ${to}) has no upcaster for. Deploy a build that reads it, or restore the key from a backup.`,
    { facts: { format, known: to } },
  );
