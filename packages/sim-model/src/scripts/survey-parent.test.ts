import { describe, expect, test } from "vitest";
import type { ScriptToolCall } from "../script.ts";
import { playScript, user } from "./play-script.ts";
import { surveyParent } from "./survey-parent.ts";
import { surveyReader } from "./survey-reader.ts";

const documents: Record<string, string> = {
  "zebra.md": "# Zebra\n\nStripes are black. Or white.\n\n## More\n\nYes.",
  "notes/apple.txt": "Apple notes\n\nOne two three four five six seven eight nine. Ten.",
};
const listing = JSON.stringify({
  files: ["zebra.md", "notes/apple.txt", "photo.png", "lost.md", "report.md"].map((path) => ({
    path,
    bytes: 1,
  })),
});

function survey(owner: string, overrides: Record<string, string> = {}, text = "Survey the documents in ./docs.") {
  const reader = surveyReader({ thinkMs: 0 });
  const answerTool = (call: ScriptToolCall): string => {
    const override = overrides[call.name];
    if (override !== undefined) return override;
    switch (call.name) {
      case "list_files":
        return listing;
      case "task":
        return playScript(reader, [user(String(call.arguments["prompt"]))], (reading) => {
          const path = String(reading.arguments["path"]);
          const found = documents[path];
          return JSON.stringify(found === undefined ? { error: "no such file" } : { path, text: found });
        }).answer;
      case "ask_owner":
        return owner;
      default:
        return JSON.stringify({ path: "out/report.md" });
    }
  };
  return playScript(surveyParent, [user(text)], answerTool);
}

describe("survey-parent", () => {
  test("lists, delegates every document at once, asks, writes and answers", () => {
    const { steps, answer } = survey("title");
    expect(steps.map((calls) => calls.map((call) => call.name))).toEqual([
      ["list_files"],
      ["task", "task", "task"],
      ["ask_owner"],
      ["write_report"],
    ]);
    expect(steps[0]?.[0]?.arguments).toEqual({ path: "." });
    expect(steps[1]?.[1]?.arguments).toEqual({
      subagent: "reader",
      prompt: "Read the document notes/apple.txt",
      description: "notes/apple.txt",
    });
    expect(steps[2]?.[0]?.arguments).toEqual({
      question: "In which order should the report list the documents?",
      options: ["title", "words"],
      default: "title",
    });
    expect(answer).toBe(
      "I surveyed 2 documents with 20 words in total. 1 could not be read. The report is in out/report.md.",
    );
  });

  test("the report holds what the readers said, and who failed and why", () => {
    const report = survey("title").steps[3]?.[0]?.arguments;
    expect(report?.["path"]).toBe("report.md");
    expect(report?.["content"]).toBe(`# Survey of ./docs

2 documents, 20 words, ordered by title.

## Apple notes

- File: \`notes/apple.txt\`
- Words: 12
- Headings: 0
- First sentence: One two three four five six seven eight nine.

## Zebra

- File: \`zebra.md\`
- Words: 8
- Headings: 2
- First sentence: Stripes are black.

## Could not be read

- \`lost.md\`: no such file
`);
  });

  test.each([
    ["title", "title"],
    ['"words"', "words"],
    ['{"answer":"words"}', "words"],
    ["By words, please.", "words"],
    ['{"kind":"expired"}', "title"],
    ["as you like", "title"],
  ])("the owner's answer %s means the order %s", (owner, order) => {
    expect(survey(owner).steps[3]?.[0]?.arguments["content"]).toContain(`ordered by ${order}.`);
  });

  test("the order words puts the longest document first", () => {
    const shortFirst = { "a.md": 3, "b.md": 9, "c.md": 3 };
    const results = Object.entries(shortFirst).map(([path, words]) =>
      JSON.stringify({ path, title: path, words, headings: 0, firstSentence: "" }),
    );
    const { steps } = playScript(surveyParent, [user("Survey the documents in x")], (call) => {
      if (call.name === "list_files") {
        return JSON.stringify({ files: Object.keys(shortFirst).map((path) => ({ path, bytes: 1 })) });
      }
      return call.name === "task" ? (results.shift() ?? "") : "words";
    });
    const content = String(steps[3]?.[0]?.arguments["content"]);
    expect([...content.matchAll(/^## (.*)$/gm)].map((match) => match[1])).toEqual(["b.md", "a.md", "c.md"]);
  });

  test("a task that ended without facts is listed under its document with the text it left", () => {
    const { steps } = survey("title", { task: "the child was lost" });
    expect(steps[3]?.[0]?.arguments["content"]).toContain("- `zebra.md`: the child was lost");
  });

  test("says so when the folder cannot be listed, is empty, or the report cannot be written", () => {
    expect(survey("title", { list_files: '{"error":"not allowed"}' }).answer).toBe(
      "I could not list ./docs: not allowed",
    );
    expect(survey("title", { list_files: '{"files":[]}' }).answer).toBe("I found no documents (.md, .txt) in ./docs.");
    expect(survey("title", { write_report: '{"error":"disk full"}' }).answer).toContain(
      "The report could not be written: disk full",
    );
  });

  test("a message after the answer is echoed, and a new request starts a new survey", () => {
    const { messages } = survey("title");
    const later = (text: string) => surveyParent({ messages: [...messages, user(text)], tools: [], attempt: 1 });
    expect(later("thank you")).toEqual({ text: "thank you" });
    expect(later("Survey the documents in other").toolCalls?.[0]?.name).toBe("list_files");
  });

  test.each([
    ["Survey the documents in docs and be quick", "docs"],
    ["Please: Survey the documents in .", "."],
    ['Survey the documents in "my own papers", please', "my own papers"],
  ])("in %s the folder is %s", (text, folder) => {
    expect(survey("title", { list_files: '{"files":[]}' }, text).answer).toContain(`in ${folder}.`);
  });

  test("asks for an assignment when it has none", () => {
    const step = surveyParent({ messages: [user("hello")], tools: [], attempt: 1 });
    expect(step).toEqual({ text: 'I survey folders. Ask: "Survey the documents in <folder>".' });
  });
});

function read(result: string) {
  return playScript(surveyReader({ thinkMs: 5 }), [user("Read the document a b.md")], () => result);
}

describe("survey-reader", () => {
  test("reads the document it was given and answers with its facts", () => {
    const { steps, answer } = read(JSON.stringify({ path: "a b.md", text: "# T\n\nHi there. Bye." }));
    expect(steps).toEqual([[{ name: "read_file", arguments: { path: "a b.md" } }]]);
    expect(JSON.parse(answer)).toEqual({
      path: "a b.md",
      title: "T",
      words: 4,
      headings: 1,
      firstSentence: "Hi there.",
    });
  });

  test.each([
    ['{"error":"no such file"}', "no such file"],
    ['{"error":{"message":"denied"}}', "denied"],
    ["the tool crashed", "the tool crashed"],
    ["", "the tool returned nothing"],
  ])("answers with the reason when the result is %s", (result, error) => {
    expect(JSON.parse(read(result).answer)).toEqual({ path: "a b.md", error });
  });

  test("reads a result that was encoded twice", () => {
    const twice = JSON.stringify(JSON.stringify({ path: "a b.md", text: "One." }));
    expect(JSON.parse(read(twice).answer)).toMatchObject({ title: "One.", words: 1 });
  });

  test("thinks before each of its answers", () => {
    const step = surveyReader({ thinkMs: 5 })({
      messages: [user("Read the document x.md")],
      tools: [],
      attempt: 1,
    });
    expect(step.delayMs).toBe(5);
  });
});
