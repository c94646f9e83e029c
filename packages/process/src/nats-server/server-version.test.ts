import { describe, expect, test } from "vitest";
import { compareServerVersions, isRecentEnough, releaseLineOf, tryServerVersion } from "./server-version.ts";

describe("server version", () => {
  test.each([
    ["nats-server: v2.10.27\n", "2.10.27"],
    ["nats-server: v2.9.10", "2.9.10"],
    ["nats-server: v2.12.0-RC.1", "2.12.0-RC.1"],
    ["2.15.1", "2.15.1"],
    ["command not found", undefined],
    ["", undefined],
  ])("is read from %j", (text, version) => {
    expect(tryServerVersion(text)).toBe(version);
  });

  test("compares as numbers, not as text, and puts a pre-release before its release", () => {
    const shuffled = ["2.10.27", "2.9.25", "2.10.3", "2.11.0", "2.11.0-RC.2", "2.11.0-RC.1", "3.0.0"];
    expect(shuffled.toSorted(compareServerVersions)).toEqual([
      "2.9.25",
      "2.10.3",
      "2.10.27",
      "2.11.0-RC.1",
      "2.11.0-RC.2",
      "2.11.0",
      "3.0.0",
    ]);
  });

  test.each([
    ["2.9.10", false],
    ["2.10.22", false],
    ["2.10.23-RC.1", false],
    ["2.10.23", true],
    ["2.15.1", true],
  ])("%s is recent enough: %s", (version, expected) => {
    expect(isRecentEnough(version)).toBe(expected);
  });

  test("belongs to a release line", () => {
    expect(releaseLineOf("2.10.27")).toBe("2.10");
  });
});
