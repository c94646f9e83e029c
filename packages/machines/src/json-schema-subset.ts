import { z } from "zod";

/** The part of JSON Schema in which an answer can be described. Anything else in it is refused, never ignored. */
export interface AnswerSchema {
  readonly type?: "string" | "number" | "integer" | "boolean" | "object" | "array" | undefined;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly enum?: readonly unknown[] | undefined;
  readonly minLength?: number | undefined;
  readonly maxLength?: number | undefined;
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly properties?: Readonly<Record<string, AnswerSchema>> | undefined;
  readonly required?: readonly string[] | undefined;
  readonly additionalProperties?: boolean | undefined;
  readonly items?: AnswerSchema | undefined;
  readonly minItems?: number | undefined;
  readonly maxItems?: number | undefined;
}

const count = z.int().nonnegative().optional();

export const AnswerSchema: z.ZodType<AnswerSchema> = z.lazy(() =>
  z.strictObject({
    type: z.enum(["string", "number", "integer", "boolean", "object", "array"]).optional(),
    title: z.string().optional(),
    description: z.string().optional(),
    enum: z.array(z.json()).min(1).max(256).optional(),
    minLength: count,
    maxLength: count,
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    properties: z.record(z.string(), AnswerSchema).optional(),
    required: z.array(z.string()).optional(),
    additionalProperties: z.boolean().optional(),
    items: AnswerSchema.optional(),
    minItems: count,
    maxItems: count,
  }),
);

type Schema = Readonly<Record<string, unknown>>;
type Unknowns = { readonly allowUnknownKeys: boolean };

/**
 * First place where a value does not fit a JSON Schema, as a sentence; undefined when it fits.
 *
 * Keywords outside of {@link AnswerSchema} are not looked at: for the arguments of a tool this is a first sieve, the tool
 * itself has the last word.
 */
export function mismatchOf(schema: Schema, value: unknown, options: Unknowns, path = "value"): string | undefined {
  return (
    mismatchOfType(schema["type"], value, path) ??
    mismatchOfEnum(schema["enum"], value, path) ??
    (typeof value === "string" ? outside(schema, "Length", value.length, `${path} has`, "characters") : undefined) ??
    (typeof value === "number" ? outside(schema, "imum", value, `${path} is`, "") : undefined) ??
    (Array.isArray(value) ? mismatchOfItems(schema, value, options, path) : undefined) ??
    (isPlainObject(value) ? mismatchOfProperties(schema, value, options, path) : undefined)
  );
}

/** A value that JSON writes as an object. */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

function mismatchOfType(type: unknown, value: unknown, path: string): string | undefined {
  const allowed: readonly unknown[] = Array.isArray(type) ? type : type === undefined ? [] : [type];
  if (allowed.length === 0) return undefined;
  const found = typeOf(value);
  if (allowed.includes(found) || (found === "integer" && allowed.includes("number"))) return undefined;
  return `${path} must be ${allowed.join(" or ")}, found ${found}`;
}

function mismatchOfEnum(allowed: unknown, value: unknown, path: string): string | undefined {
  if (!Array.isArray(allowed)) return undefined;
  const json = JSON.stringify(value);
  if (allowed.some((one) => JSON.stringify(one) === json)) return undefined;
  return `${path} must be one of ${allowed.map((one) => JSON.stringify(one)).join(", ")}`;
}

function outside(schema: Schema, suffix: string, size: number, subject: string, unit: string): string | undefined {
  const min = schema[`min${suffix}`];
  const max = schema[`max${suffix}`];
  const found = `${subject} ${size}${unit === "" ? "" : ` ${unit}`}`;
  if (typeof min === "number" && size < min) return `${found}, at least ${min} expected`;
  if (typeof max === "number" && size > max) return `${found}, at most ${max} expected`;
  return undefined;
}

function mismatchOfItems(schema: Schema, items: readonly unknown[], options: Unknowns, path: string) {
  const size = outside(schema, "Items", items.length, `${path} has`, "items");
  const each = schema["items"];
  if (size !== undefined || !isPlainObject(each)) return size;
  return firstOf(items.entries(), ([index, item]) => mismatchOf(each, item, options, `${path}[${index}]`));
}

function mismatchOfProperties(schema: Schema, value: Schema, options: Unknowns, path: string) {
  const properties = isPlainObject(schema["properties"]) ? schema["properties"] : {};
  const required = z.array(z.string()).safeParse(schema["required"]).data ?? [];
  const missing = required.find((key) => !Object.hasOwn(value, key));
  if (missing !== undefined) return `${path}.${missing} is missing`;
  return firstOf(Object.entries(value), ([key, item]) => {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (isPlainObject(property)) return mismatchOf(property, item, options, `${path}.${key}`);
    const isRefused = schema["additionalProperties"] === false && property === undefined && !options.allowUnknownKeys;
    return isRefused ? `${path}.${key} is not expected` : undefined;
  });
}

function firstOf<T>(items: Iterable<T>, check: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = check(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
