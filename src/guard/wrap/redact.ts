import type { Finding } from "../../model/finding.ts";

/** Each span becomes `[removed: code]`; spans that overlap become one, with all their codes. */
export function redact(text: string, findings: readonly Finding[]): string {
  const parts: string[] = [];
  let from = 0;
  for (const { start, end, codes } of joined(findings, text.length)) {
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

function joined(findings: readonly Finding[], length: number): Removal[] {
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
