import { expect, test } from "vitest";
import { parseSettings } from "./settings.ts";

const environment = {
  RUNNER_NATS_URL: "nats://127.0.0.1:4222",
  RUNNER_NATS_PASSWORD: "secret-password",
  RUNNER_NAMESPACE: "main",
  RUNNER_SEAT: "s1",
  RUNNER_FOLDER: "journal",
  RUNNER_TOKEN_FILE: "token",
  RUNNER_ENGINE: '["engine","--fast"]',
  RUNNER_CONTRACT: '{"engine":"sim","options":[],"permissionModes":["ask"]}',
};

test("JSON is read, and what is not of a runner is passed over", () => {
  expect(parseSettings({ ...environment, PATH: "x" })).toEqual({
    ...environment,
    RUNNER_ENGINE: ["engine", "--fast"],
    RUNNER_CONTRACT: { engine: "sim", options: [], permissionModes: ["ask"] },
  });
});

test.each<[string, Record<string, string | undefined>]>([
  ["RUNNER_SEAT", { RUNNER_SEAT: "a.b" }],
  ["RUNNER_ENGINE", { RUNNER_ENGINE: "engine" }],
  ["RUNNER_CONTRACT", { RUNNER_CONTRACT: "{}" }],
  ["RUNNER_NATS_URL, RUNNER_FOLDER", { RUNNER_NATS_URL: undefined, RUNNER_FOLDER: "" }],
])("%s: named, and no value is shown", (names, changed) => {
  expect(() => parseSettings({ ...environment, ...changed })).toThrow(
    expect.objectContaining({ code: "HF-7001", facts: { names }, message: expect.not.stringContaining("secret") }),
  );
});
