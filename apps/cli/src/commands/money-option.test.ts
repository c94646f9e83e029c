import { InvalidArgumentError } from "commander";
import { expect, test } from "vitest";
import { dollars, moneyOption, tokensOption } from "./money-option.ts";

test("US dollars become whole millionths, none is no limit, and nothing is rounded away", () => {
  expect(["5", "2.5", "0.000001", "0", "none"].map(moneyOption)).toEqual([5_000_000, 2_500_000, 1, 0, null]);
  for (const text of ["", "-1", "1.", "1.2345678", "1e3", "$5", "5 ", "1234567890"])
    expect(() => moneyOption(text)).toThrow(InvalidArgumentError);
  expect(dollars(2_500_000)).toBe("$2.500000");
});

test("tokens are whole numbers", () => {
  expect(["7", "none"].map(tokensOption)).toEqual([7, null]);
  for (const text of ["", "1.5", "-1", "99999999999999999999"])
    expect(() => tokensOption(text)).toThrow(InvalidArgumentError);
});
