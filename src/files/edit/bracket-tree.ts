/**
 * What stands between brackets, with its places in the text: JSON and JSON5 as a whole, the flow style of YAML and the
 * inline tables of TOML. One surgery does all four.
 */
import type { PathStep } from "./text-editor.ts";

export interface BracketNode {
  readonly kind: "object" | "list" | "scalar";
  readonly start: number;
  readonly end: number;
  /** Empty for a scalar. */
  readonly members: readonly BracketMember[];
  /** What a scalar says, if it is a text. */
  readonly string?: string;
}

export interface BracketMember {
  /** Of an object's member. */
  readonly key?: string;
  readonly start: number;
  readonly end: number;
  readonly value: BracketNode;
  /** Where the comma behind it stands. */
  readonly comma?: number;
}

/** The place of a step among the members, or -1. Of two with one key the last counts, as every parser has it. */
export function indexOfStep(node: BracketNode, step: PathStep): number {
  if (typeof step === "string") {
    return node.kind === "object" ? node.members.findLastIndex((member) => member.key === step) : -1;
  }
  if (node.kind !== "list") return -1;
  return node.members.findIndex(({ value }) => {
    const field = value.members[indexOfStep(value, step.key)];
    return field?.value.string === step.is;
  });
}
