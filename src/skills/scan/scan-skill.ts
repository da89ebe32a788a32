/** Scanning before install: every text file of a skill against the guard's detectors and the rules for files. */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { excerptOf } from "../../guard/detect/show-hidden.ts";
import { scanTextsInTurns } from "../../guard/scan-texts.ts";
import type { Skill, SkillFile, SkillFinding, SkillSeverity } from "../../model/skill.ts";
import { readText } from "./file-text.ts";
import { frontmatterValues } from "./frontmatter-values.ts";
import { installStepFindings } from "./install-steps.ts";
import { findingOf } from "./judge.ts";
import type { TextKind } from "./places.ts";
import { alwaysOn } from "./rules/always-on.ts";
import { fileFindings, HEAD } from "./rules/file-kinds.ts";
import { guardSigns } from "./rules/guard-findings.ts";
import { RULES } from "./rules/rules.ts";
import { findingSigns } from "./rules/rule.ts";
import { EnvUses } from "./rules/undeclared-env.ts";
import { type ScannedText, scannedText, scanningText } from "./scanned-text.ts";
import { isWorse } from "./sign.ts";
import { type Subject, subjectOf } from "./subject.ts";
import { Turns } from "./turns.ts";

/** Of one file, of all files together, and of their number. What is beyond is told, not passed over. */
const MOST_BYTES = 1024 * 1024;
const MOST_TOTAL = 16 * 1024 * 1024;
const MOST_FILES = 1_000;
const MOST_OF_A_KIND = 5;
const MOST_FINDINGS = 200;
const EXCERPT = 160;

/**
 * What is suspicious about a skill, in the order of its files and lines. Nothing of it is run.
 *
 * @param readFile gives the bytes of a file by its path inside the skill; the skill's folder is read without it.
 */
export async function scanSkill(
  skill: Skill,
  readFile?: (path: string) => Promise<Uint8Array>,
): Promise<SkillFinding[]> {
  const read = readFile ?? ((path: string) => readStart(join(skill.dir, path), MOST_BYTES));
  const turns = new Turns();
  const findings: SkillFinding[] = [];
  const whole = skill.bytes.subarray(0, MOST_BYTES);
  const document = readText("SKILL.md", whole) ?? { text: "", nuls: false };
  if (document.nuls) findings.push(withNuls("SKILL.md", "instructions"));
  const scanned = await turns.run(scanningText("SKILL.md", "instructions", document.text));
  const subject = subjectOf(skill, scanned);
  const uses = new EnvUses(subject);
  findings.push(...(await scanText(scanned, subject, turns)));
  uses.add(scanned);
  for await (const { text, found } of readTexts(skill, read, turns)) {
    findings.push(...found);
    if (text === undefined) continue;
    // Each file is let go before the next one is read: its lines take many times its length.
    findings.push(...(await scanText(text, subject, turns)));
    uses.add(text);
  }
  findings.push(...uses.findings(), ...installStepFindings(subject, document.text));
  const values = frontmatterValues(skill.frontmatter, document.text);
  const valueText = scannedText("SKILL.md", "instructions", values.map(({ value }) => value).join("\n"));
  for (const finding of await scanText(valueText, subject, turns))
    findings.push({ ...finding, line: values[(finding.line ?? 1) - 1]?.line ?? 1 });
  const always = alwaysOn(skill, findings);
  if (always !== undefined) findings.push(always);
  return inOrder(skill, bounded(findings));
}

/** The worst severity; undefined where there is nothing. */
export function worst(findings: readonly SkillFinding[]): SkillSeverity | undefined {
  let found: SkillSeverity | undefined;
  for (const { severity } of findings) if (found === undefined || isWorse(severity, found)) found = severity;
  return found;
}

interface Read {
  readonly text?: ScannedText;
  /** What is told about the file as such. */
  readonly found: readonly SkillFinding[];
}

async function* readTexts(
  skill: Skill,
  read: (path: string) => Promise<Uint8Array>,
  turns: Turns,
): AsyncGenerator<Read> {
  const files = skill.files.filter(({ path }) => path !== "SKILL.md");
  const allExecutable = files.length > 0 && skill.files.every(({ executable }) => executable);
  let room = MOST_TOTAL;
  for (const [index, file] of files.entries()) {
    if (index >= MOST_FILES || room <= 0) {
      const message = `${files.length - index} files are beyond what is scanned of one skill.`;
      yield { found: [unscanned(file, message, "warn")] };
      return;
    }
    if (turns.isDue()) await turns.give();
    let bytes: Uint8Array;
    try {
      bytes = (await read(file.path)).subarray(0, MOST_BYTES);
    } catch {
      yield { found: [unscanned(file, "The file could not be read.", "warn")] };
      continue;
    }
    const content = readText(file.path, bytes);
    const found = fileFindings(file, bytes.subarray(0, HEAD), content?.isText === true, allExecutable);
    if (content === undefined) {
      yield { found };
      continue;
    }
    room -= bytes.length;
    const { kind, isText, nuls } = content;
    const severity = kind === "data" ? "note" : "warn";
    if (!isText) found.push(ofWhole(file.path, "warn", "The file is a script by its name but does not read as text."));
    else if (nuls && kind !== "data") found.push(withNuls(file.path, kind));
    if (file.size > MOST_BYTES)
      found.push(unscanned(file, "Only the start of the file was scanned, since it is very long.", severity));
    yield { found, text: await turns.run(scanningText(file.path, kind, content.text)) };
  }
}

async function scanText(text: ScannedText, subject: Subject, turns: Turns): Promise<SkillFinding[]> {
  const findings: SkillFinding[] = [];
  const found = await scanTextsInTurns([text.raw], () => turns.give());
  for (const sign of guardSigns(text, found.get(text.raw) ?? [])) findings.push(findingOf(sign, text, subject));
  for (const rule of RULES) {
    if (turns.isDue()) await turns.give();
    for (const sign of findingSigns(rule, text, subject)) {
      if (sign !== undefined) findings.push(findingOf(sign, text, subject));
      if (turns.isDue()) await turns.give();
    }
  }
  if (text.cutShort)
    findings.push({
      code: "unscanned",
      severity: text.kind === "data" ? "note" : "warn",
      message: "Only the first lines of the file were scanned, since there are very many.",
      file: text.path,
    });
  return bounded(findings);
}

function withNuls(file: string, kind: TextKind): SkillFinding {
  const message = "There are NUL characters in the text, which hide it from programs that look at it.";
  return ofWhole(file, kind === "script" ? "refuse" : "warn", message);
}

/** Code that is kept from being read. */
function ofWhole(file: string, severity: SkillSeverity, message: string): SkillFinding {
  return {
    code: "hidden_code",
    severity,
    message,
    file,
    line: 1,
    excerpt: excerptOf(file, 0, Math.min(file.length, EXCERPT)),
  };
}

function unscanned({ path }: SkillFile, message: string, severity: SkillSeverity): SkillFinding {
  return { code: "unscanned", severity, message, file: path };
}

/** The worst of each kind in each file, and one for each line. */
function bounded(findings: readonly SkillFinding[]): SkillFinding[] {
  const kept: SkillFinding[] = [];
  const counts = new Map<string, number>();
  const places = new Set<string>();
  for (const severity of ["refuse", "warn", "note"] as const) {
    for (const finding of findings) {
      if (finding.severity !== severity || kept.length >= MOST_FINDINGS) continue;
      const kind = `${finding.file}\0${finding.code}`;
      const place = `${kind}\0${finding.line ?? 0}`;
      const count = counts.get(kind) ?? 0;
      if (count >= MOST_OF_A_KIND || places.has(place)) continue;
      counts.set(kind, count + 1);
      places.add(place);
      kept.push(finding);
    }
  }
  return kept;
}

function inOrder({ files }: Skill, findings: readonly SkillFinding[]): SkillFinding[] {
  const order = new Map(files.map(({ path }, index) => [path, index]));
  return findings.toSorted(
    (a, b) => (order.get(a.file) ?? -1) - (order.get(b.file) ?? -1) || (a.line ?? 0) - (b.line ?? 0),
  );
}

async function readStart(path: string, most: number): Promise<Uint8Array> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const buffer = new Uint8Array(Math.min(most, size));
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return buffer.subarray(0, length);
  } finally {
    await file.close();
  }
}
