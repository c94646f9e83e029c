import { expect, test } from "vitest";
import { assertServerVersion, isServerVersionAccepted } from "./server-version.ts";

test.each([
  ["2.10.23", true],
  ["2.10.27", true],
  ["2.11.0", true],
  ["v2.15.1", true],
  ["3.0.0", true],
  ["2.12.0-preview.1", true],
  ["2.10.22", false],
  ["2.9.25", false],
  ["1.99.99", false],
  ["unknown", false],
  ["", false],
])("server version %s is accepted: %s", (version, accepted) => {
  expect(isServerVersionAccepted(version)).toBe(accepted);
});

test("HF-4002 names the address, what was found and what is needed", () => {
  expect(() => assertServerVersion("127.0.0.1:4222", "2.9.10")).toThrow(
    expect.objectContaining({
      code: "HF-4002",
      message: expect.stringMatching(/127\.0\.0\.1:4222.*2\.9\.10.*2\.10\.23/),
    }),
  );
});
