/** Inspects a result on its way out: size, detectors, redaction, marks, wrapping. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { GuardRules } from "../../model/config.ts";
import { formatBytes } from "../../model/content.ts";
import { type Finding, isAtLeast, type Place } from "../../model/finding.ts";
import type { Result } from "../../model/protocol.ts";
import { encodeAhead, extraBytes, LARGE_JSON, resultBytes } from "../../base/json-bytes.ts";
import { mapTexts, type ResultTexts, rewriteTexts, textsOf } from "./result-texts.ts";
import type { Sensitivity } from "../../guard/scan-text.ts";
import type { ScanContent, TextFindings } from "../../guard/scan-texts.ts";
import { findingKinds, forgedMarkersIn, withUntrustedMark, wrapUntrusted } from "../../guard/wrap-untrusted.ts";

/** The verdict of the guard on a result. */
type Inspection = Found &
  (
    | { readonly verdict: "pass"; readonly bytes: number; readonly findings: readonly Finding[] }
    | {
        readonly verdict: "changed";
        readonly bytes: number;
        readonly findings: readonly Finding[];
        /** Spellings of the boundary's marker in it that were replaced. */
        readonly forgedMarkers: number;
        readonly result: Result;
      }
    | {
        readonly verdict: "rejected";
        readonly code: "too_large" | "blocked";
        readonly message: string;
        readonly hint: string;
        readonly findings: readonly Finding[];
      }
  );

/** All that was found, by text. */
interface Found {
  readonly found?: TextFindings;
}

interface InspectionOptions {
  /** Largest size of the result as JSON, in bytes. */
  readonly resultBytes: number;
  /** Up to this size the JSON of a large result is made while a thread reads it: it is going to be sent as it is. */
  readonly encodeUpTo?: number;
  /** The untrusted origin; absent for a trusted source, where only the size is checked. */
  readonly untrusted?: UntrustedOrigin;
}

export interface UntrustedOrigin {
  readonly server: string;
  readonly tool: string;
  /** Names the boundary of this result where it is wrapped; no one outside can know it in advance. */
  readonly boundary: string;
  readonly wrap: boolean;
  /** Marks a result without findings too. A wrapped one always is. */
  readonly marksAll?: boolean;
  readonly onSuspicious: GuardRules["onSuspicious"];
  readonly place: Place;
  readonly sensitivity: Sensitivity;
  readonly scan: ScanContent;
}

/** Reported findings of one result, the worst first. */
const MAX_FINDINGS = 200;
/** Each text gets its own boundary, which is longer than many texts. */
const MAX_WRAPPED_TEXTS = 5_000;
const NO_FINDINGS: TextFindings = new Map();

/** Fails closed: a scan that throws rejects the result. A large one is read off the main thread. */
export async function inspectResult(result: Result, options: InspectionOptions): Promise<Inspection> {
  try {
    const { untrusted } = options;
    const long: string[] = [];
    const least = resultBytes(result, options.resultBytes, long);
    if (!(least <= options.resultBytes)) return tooLarge(options.resultBytes);
    // Each step of a large one takes some tenths of a millisecond or more: what others wait for goes between them.
    if (least > LARGE_JSON) await nextTurn();
    const texts = untrusted && textsOf(result);
    const isRead = untrusted?.onSuspicious !== "ignore" && texts !== undefined && texts.texts.size > 0;
    const scanning = isRead ? untrusted?.scan(texts.texts, untrusted) : undefined;
    let bytes = least;
    if (least > LARGE_JSON) {
      scanning?.catch(() => {});
      // While a thread reads it.
      await nextTurn();
      const isSent = least <= (options.encodeUpTo ?? 0);
      bytes = (isSent ? encodeAhead(result) : undefined) ?? least + extraBytes(long);
    }
    if (!(bytes <= options.resultBytes)) return tooLarge(options.resultBytes);
    if (untrusted === undefined || texts === undefined) return { verdict: "pass", bytes, findings: [] };
    const found = (await scanning) ?? NO_FINDINGS;
    return { ...applyGuardRules({ result, bytes, texts, found }, untrusted), found };
  } catch (error) {
    return inspectionFailed(error);
  }
}

interface Scanned {
  readonly result: Result;
  readonly bytes: number;
  readonly texts: ResultTexts;
  readonly found: TextFindings;
}

function applyGuardRules({ result, bytes, texts, found }: Scanned, source: UntrustedOrigin): Inspection {
  const findings = worstOf(found);
  const serious = findings.filter(isSerious);
  if (serious.length > 0 && source.onSuspicious === "block") return blocked(source, serious);

  const replacements = source.onSuspicious === "redact" ? redactions(found) : new Map<string, string>();
  const isToChange = replacements.size > 0 || texts.hasForgedMeta;
  const clean = isToChange ? rewriteTexts(result, (text) => replacements.get(text) ?? text) : result;
  let count = 0;
  let forgedMarkers = 0;
  const { boundary: id, server, tool } = source;
  const wrap = (text: string): string => {
    count += 1;
    if (text === "" || count > MAX_WRAPPED_TEXTS) return text;
    const wrapped = wrapUntrusted(text, { id, server, tool, findings: serious });
    forgedMarkers += forgedMarkersIn(text, wrapped);
    return wrapped;
  };
  const wrapped = source.wrap ? mapTexts(clean, wrap) : clean;
  if (count > MAX_WRAPPED_TEXTS) return tooManyTexts();
  if (serious.length === 0 && !source.wrap && source.marksAll !== true) {
    return isToChange
      ? { verdict: "changed", bytes, findings, forgedMarkers, result: clean }
      : { verdict: "pass", bytes, findings };
  }
  const mark = {
    server: source.server,
    tool: source.tool,
    wrapped: source.wrap,
    ...(source.wrap ? { boundary: source.boundary } : {}),
    findings: findingKinds(serious),
    ...(serious.length === 0 ? {} : { place: source.place, score: Math.max(...serious.map(({ score }) => score)) }),
  };
  return { verdict: "changed", bytes, findings, forgedMarkers, result: withUntrustedMark(wrapped, mark) };
}

function isSerious({ severity }: Finding): boolean {
  return isAtLeast(severity, "medium");
}

function worstOf(found: TextFindings): Finding[] {
  const findings = [...found.values()].flat();
  if (findings.length <= MAX_FINDINGS) return findings;
  const serious = findings.filter(isSerious);
  const others = findings.filter((finding) => !isSerious(finding));
  return [...serious, ...others].slice(0, MAX_FINDINGS);
}

function redactions(found: TextFindings): Map<string, string> {
  const replacements = new Map<string, string>();
  for (const [text, findings] of found) {
    const serious = findings.filter(isSerious);
    if (serious.length > 0) replacements.set(text, redact(text, serious));
  }
  return replacements;
}

function inspectionFailed(error: unknown): Inspection {
  const message = `The result could not be inspected: ${error instanceof Error ? error.message : "unknown fault"}.`;
  const hint = "A result that cannot be inspected is not passed on. The tool must return plain JSON values.";
  return { verdict: "rejected", code: "blocked", message, hint, findings: [] };
}

function tooLarge(limit: number): Inspection {
  const message = `The result is larger than the limit of ${formatBytes(limit)}.`;
  const hint = "Ask the tool for less, or raise limits.resultBytes.";
  return { verdict: "rejected", code: "too_large", message, hint, findings: [] };
}

function tooManyTexts(): Inspection {
  const message = `The result has more than ${MAX_WRAPPED_TEXTS} texts, too many to mark each as untrusted.`;
  return { verdict: "rejected", code: "too_large", message, hint: "Ask the tool for less.", findings: [] };
}

function blocked({ server, tool }: UntrustedOrigin, findings: readonly Finding[]): Inspection {
  const codes = [...new Set(findings.map(({ code }) => code))].join(", ");
  const message = `The guard withheld the result of ${tool} of ${server}: ${codes}.`;
  const hint = "guard.onSuspicious is block. See the audit log, or set it to warn or redact to get such results.";
  return { verdict: "rejected", code: "blocked", message, hint, findings };
}

/** Each span becomes `[removed: code]`; spans that overlap become one, with all their codes. */
export function redact(text: string, findings: readonly Finding[]): string {
  const parts: string[] = [];
  let from = 0;
  for (const { start, end, codes } of joinSpans(findings, text.length)) {
    parts.push(text.slice(from, start), `[removed: ${[...codes].join(", ")}]`);
    from = end;
  }
  parts.push(text.slice(from));
  return parts.join("");
}

interface Removal {
  readonly start: number;
  end: number;
  readonly codes: Set<string>;
}

function joinSpans(findings: readonly Finding[], length: number): Removal[] {
  const removals: Removal[] = [];
  for (const finding of findings.toSorted((a, b) => a.start - b.start)) {
    const start = Math.max(0, finding.start);
    const end = Math.min(length, finding.end);
    if (end <= start) continue;
    const last = removals.at(-1);
    if (last !== undefined && start < last.end) {
      last.end = Math.max(last.end, end);
      last.codes.add(finding.code);
    } else {
      removals.push({ start, end, codes: new Set([finding.code]) });
    }
  }
  return removals;
}
