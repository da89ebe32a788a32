import { describe, expect, it } from "vitest";
import { EXAMPLES } from "../../src/contract/operation-examples.ts";
import { OPERATIONS, type OperationName } from "../../src/contract/operations.ts";

// The table's keys are its names.
const names = Object.keys(OPERATIONS) as OperationName[];

describe("[oper-04a] examples of the contract", () => {
  it.each(names)("%s: input and output are what the schemas say, and nothing more", (name) => {
    const { input, output } = OPERATIONS[name];
    const example = EXAMPLES[name];
    expect(input.parse(example.input)).toMatchObject(example.input);
    // Unknown keys would be dropped.
    expect(output.parse(example.output)).toEqual(example.output);
  });
});
