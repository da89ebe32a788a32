import { expect, it } from "vitest";
import { fillForm, visitPage } from "../../../src/cli/run/terminal-questions.ts";

function asker(...answers: string[]) {
  const prompts: string[] = [];
  const notes: string[] = [];
  return {
    prompts,
    notes,
    line: async (prompt: string) => {
      prompts.push(prompt);
      return answers.shift() ?? "";
    },
    note: (text: string) => void notes.push(text),
  };
}

const FORM = {
  type: "object",
  properties: {
    city: { type: "string", title: "City" },
    days: { type: "integer", default: 3 },
    unit: { type: "string", enum: ["C", "F"] },
  },
  required: ["city"],
};

it("[agent-07a] a form is filled in field by field, and asked again for what does not fit", async () => {
  const person = asker("Paris", "soon", "5", "F");
  expect(await fillForm(FORM, person)).toEqual({ action: "accept", content: { city: "Paris", days: 5, unit: "F" } });
  expect(person.prompts).toEqual(["City, leave empty to decline: ", "days [3]: ", "days [3]: ", "unit (C, F): "]);
  expect(person.notes[0]).toContain('"soon" is not');
});

it("[agent-07a] empty means the default, nothing, or no", async () => {
  expect(await fillForm(FORM, asker("Paris"))).toEqual({ action: "accept", content: { city: "Paris", days: 3 } });
  expect(await fillForm(FORM, asker(""))).toEqual({ action: "decline" });
  expect(await fillForm({ type: "object" }, asker("y"))).toEqual({ action: "accept" });
  expect(await fillForm({ type: "object" }, asker(""))).toEqual({ action: "decline" });
});

it("[agent-07a] an address is shown and never opened", async () => {
  const person = asker("");
  expect(await visitPage("https://example.com/login", person)).toEqual({ action: "accept" });
  expect(person.notes).toEqual(["  https://example.com/login"]);
  expect(await visitPage("https://example.com/login", asker("n"))).toEqual({ action: "decline" });
});
