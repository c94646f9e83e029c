import { expect, test } from "vitest";
import { createLogger } from "./logger.ts";

test("one line per event, with ids; content and secrets are hidden even when somebody passes them", () => {
  const lines: string[] = [];
  const log = createLogger({ level: "info", node: "n1", destination: { write: (line) => void lines.push(line) } });
  log.info("actor.committed", { key: "d-1.task.x", rev: 3, prompt: "secret words", nested: { apiKey: "sk-1" } });
  log.debug("actor.loaded", { key: "d-1.task.x" });
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ event: "actor.committed", node: "n1", key: "d-1.task.x", rev: 3 });
  expect(lines[0]).not.toMatch(/secret words|sk-1/);
});
