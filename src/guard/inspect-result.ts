/** What the guard does with a result on its way out: size, detectors, redaction, marks, wrapping. */
import type { GuardRules } from "../model/config.ts";
import { formatBytes } from "../model/content.ts";
import { type Finding, isAtLeast } from "../model/finding.ts";
import { isJsonObject } from "../model/json.ts";
import type { Result } from "../model/protocol.ts";
import { detect } from "./detect/detect.ts";
import { mapStrings, mapTexts } from "./result-texts.ts";
import { resultBytes } from "./result-size.ts";
import { redact } from "./wrap/redact.ts";
import { wrapUntrusted } from "./wrap/wrap.ts";

/** Under this key of `_meta` stands what is known of untrusted content. */
export const UNTRUSTED_KEY = "toolcrib/untrusted";

export interface UntrustedMark {
  readonly server: string;
  readonly tool: string;
  readonly wrapped: boolean;
  readonly findings: readonly Pick<Finding, "code" | "severity">[];
}

/** What the guard says of a result. */
export type Inspection =
  | { readonly verdict: "pass"; readonly bytes: number; readonly findings: readonly Finding[] }
  | { readonly verdict: "changed"; readonly bytes: number; readonly findings: readonly Finding[]; readonly result: Result }
  | {
      readonly verdict: "rejected";
      readonly code: "too_large" | "blocked";
      readonly message: string;
      readonly hint: string;
      readonly findings: readonly Finding[];
    };

export interface InspectionOptions {
  /** Largest size of the result as JSON, in bytes. */
  readonly resultBytes: number;
  /** Where it came from; absent for a trusted source, of which only the size is looked at. */
  readonly untrusted?: Untrusted | undefined;
}

export interface Untrusted {
  readonly server: string;
  readonly tool: string;
  /** Names the boundary of this result; nobody outside can know it beforehand. */
  readonly boundary: string;
  readonly wrap: boolean;
  readonly onSuspicious: GuardRules["onSuspicious"];
}

/** Fails closed: a detector that throws rejects the result. */
export function inspectResult(result: Result, options: InspectionOptions): Inspection {
  try {
    const bytes = resultBytes(result, options.resultBytes);
    if (!(bytes <= options.resultBytes)) return tooLarge(options.resultBytes);
    if (options.untrusted === undefined) return { verdict: "pass", bytes, findings: [] };
    return inspectUntrusted(result, bytes, options.untrusted);
  } catch (error) {
    return {
      verdict: "rejected",
      code: "blocked",
      message: `The result could not be inspected: ${error instanceof Error ? error.message : "unknown fault"}.`,
      hint: "A result that cannot be inspected is not handed on. The tool must return plain JSON values.",
      findings: [],
    };
  }
}

function inspectUntrusted(result: Result, bytes: number, source: Untrusted): Inspection {
  const scan = scanner(source.onSuspicious);
  const scanned = scan.over(result);
  const serious = scan.findings.filter(({ severity }) => isAtLeast(severity, "medium"));
  if (serious.length > 0 && source.onSuspicious === "block") return blocked(source, serious);

  const wrapped = source.wrap ? mapTexts(scanned, (text) => (text === "" ? text : wrap(text, source, serious))) : scanned;
  const mark: UntrustedMark = {
    server: source.server,
    tool: source.tool,
    wrapped: source.wrap,
    findings: serious.map(({ code, severity }) => ({ code, severity })),
  };
  const meta = isJsonObject(wrapped["_meta"]) ? wrapped["_meta"] : {};
  const marked = { ...wrapped, _meta: { ...meta, [UNTRUSTED_KEY]: mark } };
  return { verdict: "changed", bytes, findings: scan.findings, result: marked };
}

/** Collects findings, and takes the serious ones out where that is asked for. */
function scanner(onSuspicious: GuardRules["onSuspicious"]): { over(result: Result): Result; readonly findings: Finding[] } {
  const findings: Finding[] = [];
  const look = (text: string): string => {
    const found = detect(text);
    findings.push(...found);
    return onSuspicious === "redact" ? redact(text, found.filter(({ severity }) => isAtLeast(severity, "medium"))) : text;
  };
  return {
    findings,
    over(result) {
      if (onSuspicious === "ignore") return result;
      const texts = mapTexts(result, look);
      const structured = texts["structuredContent"];
      if (structured === undefined) return texts;
      const scanned = mapStrings(structured, look);
      return scanned === structured ? texts : { ...texts, structuredContent: scanned };
    },
  };
}

function wrap(text: string, { boundary, server, tool }: Untrusted, findings: readonly Finding[]): string {
  return wrapUntrusted(text, { id: boundary, server, tool, findings });
}

function tooLarge(limit: number): Inspection {
  return {
    verdict: "rejected",
    code: "too_large",
    message: `The result is larger than the limit of ${formatBytes(limit)}.`,
    hint: "Ask the tool for less, or raise limits.resultBytes.",
    findings: [],
  };
}

function blocked({ server, tool }: Untrusted, findings: readonly Finding[]): Inspection {
  const codes = [...new Set(findings.map(({ code }) => code))].join(", ");
  return {
    verdict: "rejected",
    code: "blocked",
    message: `The guard withholds what ${tool} of ${server} returned: ${codes}.`,
    hint: "guard.onSuspicious is block. Look at the audit, and set it to warn or redact to see such results.",
    findings,
  };
}
