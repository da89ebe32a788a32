import { expect, it } from "vitest";
import { asToolcribError, type ErrorObject, errorText, errorTextForModel } from "../../src/model/errors.ts";

it.each<[ErrorObject, string]>([
  [
    {
      code: "denied",
      message: 'Policy denies wipe: deny "wipe" in /home/me/toolcrib.json.',
      hint: "Change the rule.",
      details: { rule: { list: "deny", pattern: "wipe", where: "/home/me/toolcrib.json" } },
    },
    'denied: Policy denies wipe: deny "wipe" in the rules.',
  ],
  [{ code: "blocked", message: "It was withheld.", hint: "Set guard.block." }, "blocked: It was withheld."],
  [{ code: "not_found", message: "No tool.", hint: "`toolcrib list` shows what there is." }, "not_found: No tool."],
  [{ code: "not_found", message: "No tool.", hint: "Did you mean echo?" }, "not_found: No tool. Did you mean echo?"],
])("[agent-05a] a model does not read what only people are to do: %j", (error, forModel) => {
  expect(errorTextForModel(error)).toBe(forModel);
  expect(errorText(error)).toBe(`${error.code}: ${error.message} ${error.hint}`);
});

it("says of a value that is nested too deeply for the stack that it is", () => {
  let deep: unknown = "end";
  for (let depth = 0; depth < 200_000; depth += 1) deep = [deep];
  let thrown: unknown;
  try {
    JSON.stringify(deep);
  } catch (error) {
    thrown = error;
  }
  expect(asToolcribError(thrown)).toMatchObject({ code: "too_large", message: expect.stringContaining("too deeply") });
  expect(asToolcribError(new RangeError("Invalid array length"))).toMatchObject({ code: "internal" });
});
