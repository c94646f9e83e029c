import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SeededRandom } from "@holdfast/runtime/testing";

const WORDS =
  "lease fence harbour ledger quiet orange river stone count paper signal north Brücke mañana 水 7 42 x-ray re-read".split(
    " ",
  );

/**
 * Writes documents that differ in every way a counter could get wrong: headings inside code, a byte order mark, words of other scripts,
 * lone punctuation, folders below, plain text without a heading.
 *
 * @returns their paths below `folder`
 */
export async function writeSeededDocuments(folder: string, count: number, seed: number): Promise<readonly string[]> {
  const random = new SeededRandom(seed);
  const paths: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const path = `${random.chance(0.3) ? `part-${random.below(2)}/` : ""}document-${n}.${n % 4 === 3 ? "txt" : "md"}`;
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), textOf(n, random));
    paths.push(path);
  }
  return paths;
}

function textOf(n: number, random: SeededRandom): string {
  const words = (most: number): string =>
    Array.from({ length: 1 + random.below(most) }, () => WORDS[random.below(WORDS.length)] ?? "word").join(" ");
  const blocks = Array.from({ length: 2 + random.below(6) }, (_, block) => {
    const heading = random.chance(0.5) ? `${"#".repeat(1 + random.below(3))} ${words(4)}\n\n` : "";
    const code = random.chance(0.3) ? `\n\n\`\`\`sh\n# not a heading\n${words(5)}\n\`\`\`` : "";
    return `${heading}Paragraph ${block}: ${words(40)} — ${words(10)}.${code}`;
  });
  const title = random.chance(0.7) ? `# Document ${n}\n\n` : "";
  return `${random.chance(0.2) ? "\uFEFF" : ""}${title}${blocks.join("\n\n")}\n`;
}
