import { describe, expect, test } from "vitest";
import { parseConfig } from "./config.ts";

describe("configuration", () => {
  test("has a default for everything that needs none from a person", () => {
    const config = parseConfig({ PATH: "/bin" });
    expect(config.HOLDFAST_LEASE_TTL_MS).toBe(3000);
    expect(config.HOLDFAST_POOLS).toEqual(["d"]);
    expect(config.HOLDFAST_PRINCIPAL).toBe("person-local");
    expect(config.HOLDFAST_MODEL_IDLE_MS).toBe(60_000);
  });

  test("an unknown variable is refused and the nearest known one is named", () => {
    expect(() => parseConfig({ HOLDFAST_LEASE_TTL: "5" })).toThrow(
      /HOLDFAST_LEASE_TTL is not a variable.*HOLDFAST_LEASE_TTL_MS/,
    );
  });

  test.each([
    ["HOLDFAST_LEASE_TTL_MS", "soon"],
    ["HOLDFAST_LEASE_TTL_MS", "0"],
    ["HOLDFAST_NAMESPACE", "Main"],
    ["HOLDFAST_POOLS", "d,Gpu"],
    ["HOLDFAST_PRINCIPAL", "root"],
    ["HOLDFAST_MODEL_BASE_URL", "ftp://127.0.0.1"],
    ["HOLDFAST_NATS_PORT", "70000"],
    ["HOLDFAST_ROLES", "reviewer"],
    ["HOLDFAST_ROLES", "reviewer=anna"],
    ["HOLDFAST_ROLES", "Reviewer=person-anna"],
    ["HOLDFAST_ROLES", "reviewer=person-anna,agent-chief"],
  ])("%s=%s is refused and named", (name, value) => {
    expect(() => parseConfig({ [name]: value })).toThrow(
      expect.objectContaining({ code: "HF-7001", facts: { variable: name } }),
    );
  });

  test("a secret that does not fit is not printed", () => {
    const long = `sk-${"x".repeat(20)}`;
    expect(() => parseConfig({ HOLDFAST_MODEL: long.repeat(20) })).toThrow(/HOLDFAST_MODEL/);
    expect(() => parseConfig({ HOLDFAST_MODEL_API_KEY: long, HOLDFAST_LEASE_TTL_MS: "x" })).not.toThrow(
      new RegExp(long),
    );
  });

  test("roles name those who have them", () => {
    const HOLDFAST_ROLES = "reviewer=person-anna, person-ben; operator=service-desk";
    expect(parseConfig({ HOLDFAST_ROLES }).HOLDFAST_ROLES).toEqual({
      reviewer: ["person-anna", "person-ben"],
      operator: ["service-desk"],
    });
  });

  test("an empty value counts as unset", () => {
    expect(parseConfig({ HOLDFAST_MODEL_API_KEY: "" }).HOLDFAST_MODEL_API_KEY).toBeUndefined();
  });
});
