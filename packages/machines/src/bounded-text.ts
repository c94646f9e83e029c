/** Characters of an answer or a partial result that a snapshot or an output may hold. The whole text stands in the journal. */
const MAX_ANSWER_CHARACTERS = 32_000;

/**
 * The text itself, or its beginning with a note of how much is missing.
 *
 * A surrogate pair is never split: half of one would not survive encoding.
 */
export function boundedText(text: string, maxCharacters: number = MAX_ANSWER_CHARACTERS): string {
  if (text.length <= maxCharacters) return text;
  const head = text.slice(0, maxCharacters).replace(/[\uD800-\uDBFF]$/, "");
  return `${head}… [${text.length - head.length} more characters]`;
}
