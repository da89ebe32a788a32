import { formatBytes } from "../model/content.ts";
import type { Result } from "../model/protocol.ts";
import { resultBytes } from "./result-size.ts";

/** What the guard says of a result. */
export type Inspection =
  | { readonly verdict: "pass"; readonly bytes: number }
  | { readonly verdict: "changed"; readonly bytes: number; readonly result: Result }
  | {
      readonly verdict: "rejected";
      readonly code: "too_large" | "blocked";
      readonly message: string;
      readonly hint: string;
    };

export interface InspectionLimits {
  /** Largest size of the result as JSON, in bytes. */
  readonly resultBytes: number;
}

/** Runs every detector over a result. Fails closed: a detector that throws rejects the result. */
export function inspectResult(result: Result, limits: InspectionLimits): Inspection {
  try {
    const bytes = resultBytes(result, limits.resultBytes);
    if (!(bytes <= limits.resultBytes)) return tooLarge(limits.resultBytes);
    return { verdict: "pass", bytes };
  } catch (error) {
    return {
      verdict: "rejected",
      code: "blocked",
      message: `The result could not be inspected: ${error instanceof Error ? error.message : "unknown fault"}.`,
      hint: "A result that cannot be inspected is not handed on. The tool must return plain JSON values.",
    };
  }
}

function tooLarge(limit: number): Inspection {
  return {
    verdict: "rejected",
    code: "too_large",
    message: `The result is larger than the limit of ${formatBytes(limit)}.`,
    hint: "Ask the tool for less, or raise limits.resultBytes.",
  };
}
