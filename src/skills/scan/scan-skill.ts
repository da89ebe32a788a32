/** Scanning before install: every text file of a skill against the guard's detectors and the rules for files. */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { isMainThread } from "node:worker_threads";
import { excerptOf } from "../../base/visible-text.ts";
import { scanLargeTexts, scanTexts } from "../../guard/scan-texts.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Skill, SkillFile, SkillFinding, SkillSeverity } from "../../model/skill.ts";
import { type Address, addressOf, isSuspicious } from "./addresses.ts";
import { findingOf, findingSigns, isWorse, MAX_EXCERPT_LENGTH, type Rule } from "./rule.ts";
import { credentialTheft } from "./rules/credential-theft.ts";
import { downloadAndRun, pipedDownload, rawAddress } from "./rules/downloads.ts";
import { encodedCommand, encodedPayload, obfuscatedCode } from "./rules/encoded-code.ts";
import { guardSigns } from "./rules/guard-findings.ts";
import { persistence, reverseShell, sabotage } from "./rules/host-attacks.ts";
import { fakePrerequisite, lockedArchive, remoteInstructions, weakenedSecurity } from "./rules/social-engineering.ts";
import { UndeclaredEnv } from "./rules/undeclared-env.ts";
import { LineNumbers, readText, type ScannedText, scannedText, scanningText, type TextKind } from "./scanned-text.ts";
import { describeAddress } from "./source-risk.ts";
import { type Subject, subjectOf } from "./subject.ts";

/** Limits of a scan. Files beyond them are reported. */
const MAX_FILE_BYTES = 1024 * 1024;
const MAX_TOTAL_BYTES = 16 * 1024 * 1024;
const MAX_FILES = 1_000;
const MAX_PER_CODE = 5;
const MAX_FINDINGS = 200;

/**
 * Returns suspicious parts of a skill in the order of its files and lines. Nothing in the skill is run.
 *
 * @param readFile returns the bytes of a file by its path in the skill; by default from the skill's folder.
 */
export async function scanSkill(
  skill: Skill,
  readFile?: (path: string) => Promise<Uint8Array>,
): Promise<SkillFinding[]> {
  const read = readFile ?? ((path: string) => readStart(join(skill.dir, path), MAX_FILE_BYTES));
  const slicer = new TimeSlicer();
  const findings: SkillFinding[] = [];
  const whole = skill.bytes.subarray(0, MAX_FILE_BYTES);
  const document = readText("SKILL.md", whole) ?? { text: "", nuls: false };
  if (document.nuls) findings.push(withNuls("SKILL.md", "instructions"));
  const scanned = await slicer.run(scanningText("SKILL.md", "instructions", document.text));
  const subject = subjectOf(skill, scanned);
  const uses = new UndeclaredEnv(subject);
  findings.push(...(await scanText(scanned, subject, slicer)));
  uses.add(scanned);
  for await (const { text, found } of readTexts(skill, read, slicer)) {
    findings.push(...found);
    if (text === undefined) continue;
    // Each file is released before the next one is read: its lines take many times its size.
    findings.push(...(await scanText(text, subject, slicer)));
    uses.add(text);
  }
  findings.push(...uses.findings(), ...installStepFindings(subject, document.text));
  const values = frontmatterValues(skill.frontmatter, document.text);
  const valueText = scannedText("SKILL.md", "instructions", values.map(({ value }) => value).join("\n"));
  for (const finding of await scanText(valueText, subject, slicer))
    findings.push({ ...finding, line: values[(finding.line ?? 1) - 1]?.line ?? 1 });
  const always = alwaysOn(skill, findings);
  if (always !== undefined) findings.push(always);
  return inOrder(skill, bounded(findings));
}

/** The worst severity; undefined where there is nothing. */
export function worstSeverity(findings: readonly SkillFinding[]): SkillSeverity | undefined {
  let found: SkillSeverity | undefined;
  for (const { severity } of findings) if (found === undefined || isWorse(severity, found)) found = severity;
  return found;
}

interface Read {
  readonly text?: ScannedText;
  /** Findings about the file as a whole. */
  readonly found: readonly SkillFinding[];
}

async function* readTexts(
  skill: Skill,
  read: (path: string) => Promise<Uint8Array>,
  slicer: TimeSlicer,
): AsyncGenerator<Read> {
  const files = skill.files.filter(({ path }) => path !== "SKILL.md");
  const allExecutable = files.length > 0 && skill.files.every(({ executable }) => executable);
  let room = MAX_TOTAL_BYTES;
  for (const [index, file] of files.entries()) {
    if (index >= MAX_FILES || room <= 0) {
      const message = `${files.length - index} files exceed what is scanned of one skill.`;
      yield { found: [unscanned(file, message, "warn")] };
      return;
    }
    if (slicer.isDue()) await slicer.pause();
    let bytes: Uint8Array;
    try {
      bytes = (await read(file.path)).subarray(0, MAX_FILE_BYTES);
    } catch {
      yield { found: [unscanned(file, "The file could not be read.", "warn")] };
      continue;
    }
    const content = readText(file.path, bytes);
    const found = fileFindings(file, bytes.subarray(0, HEAD_BYTES), content?.isText === true, allExecutable);
    if (content === undefined) {
      yield { found };
      continue;
    }
    room -= bytes.length;
    const { kind, isText, nuls } = content;
    const severity = kind === "data" ? "note" : "warn";
    if (!isText)
      found.push(ofWhole(file.path, "warn", "The name of the file is that of a script, but it is not text."));
    else if (nuls && kind !== "data") found.push(withNuls(file.path, kind));
    if (file.size > MAX_FILE_BYTES)
      found.push(unscanned(file, "Only the start of the file was scanned, because it is very long.", severity));
    yield { found, text: await slicer.run(scanningText(file.path, kind, content.text)) };
  }
}

/**
 * The same length, with blanks in place of the values, comments stay: values are scanned by themselves, and a skill that calls itself a guard against
 * injection must not make its own orders look like talk about attacks.
 */
function withoutFrontmatter(raw: string): string {
  const head = /^\uFEFF?---[ \t]*\r?\n/.exec(raw);
  const end = head === null ? -1 : raw.slice(0, MAX_FRONTMATTER).indexOf("\n---", head[0].length - 1);
  return end === -1
    ? raw
    : raw.slice(0, end).replaceAll(/^[^#\r\n]+/gm, (values) => " ".repeat(values.length)) + raw.slice(end);
}

const MAX_FRONTMATTER = 64 * 1024;

async function scanText(text: ScannedText, subject: Subject, slicer: TimeSlicer): Promise<SkillFinding[]> {
  const findings: SkillFinding[] = [];
  // In a thread no one waits for anything else, and it needs no further thread.
  const guarded = withoutFrontmatter(text.raw);
  const found = isMainThread
    ? await scanLargeTexts([guarded], { place: "skill" })
    : scanTexts([guarded], { place: "skill" });
  for (const sign of guardSigns(text, found.get(guarded) ?? [], subject)) findings.push(findingOf(sign, text, subject));
  for (const rule of RULES) {
    if (slicer.isDue()) await slicer.pause();
    for (const sign of findingSigns(rule, text, subject)) {
      if (sign !== undefined) findings.push(findingOf(sign, text, subject));
      if (slicer.isDue()) await slicer.pause();
    }
  }
  if (text.cutShort)
    findings.push({
      code: "unscanned",
      severity: text.kind === "data" ? "note" : "warn",
      message: "Only the first lines of the file were scanned, because it has too many.",
      file: text.path,
    });
  return bounded(findings);
}

function withNuls(file: string, kind: TextKind): SkillFinding {
  const message = "NUL characters in the text hide it from programs that check it.";
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
    excerpt: excerptOf(file, 0, Math.min(file.length, MAX_EXCERPT_LENGTH)),
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
      if (finding.severity !== severity || kept.length >= MAX_FINDINGS) continue;
      const kind = `${finding.file}\0${finding.code}`;
      const place = `${kind}\0${finding.line ?? 0}`;
      const count = counts.get(kind) ?? 0;
      if (count >= MAX_PER_CODE || places.has(place)) continue;
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

export const RULES: readonly Rule[] = [
  pipedDownload,
  downloadAndRun,
  encodedCommand,
  encodedPayload,
  rawAddress,
  lockedArchive,
  credentialTheft,
  fakePrerequisite,
  persistence,
  reverseShell,
  weakenedSecurity,
  obfuscatedCode,
  sabotage,
  remoteInstructions,
];

// Skills that are always in the prompt. By itself the flag is a feature of its dialect.

const GREEDY =
  /\b(?:every|all|any|each)\s{1,3}(?:single )?(?:user )?(?:requests?|tasks?|messages?|conversations?|questions?|prompts?|sessions?|quer(?:y|ies)|interactions?|responses?|situations?|slicer?|tool calls?|commands?|outputs?)\b|\balways (?:use|load|run|invoke|activate|apply|call|follow)\b|\bbefore (?:any|every|each|all)\b|\bfor everything\b|\bno matter what\b|\bregardless of\b|\bwhatever the\b/i;

function alwaysOn(skill: Skill, findings: readonly SkillFinding[]): SkillFinding | undefined {
  if (!skill.always) return undefined;
  const greedy = GREEDY.test(skill.description);
  const suspicious = findings.some(({ severity, code }) => severity !== "note" && code !== "undeclared_env");
  if (!greedy && !suspicious) return undefined;
  return {
    code: "always_on",
    severity: greedy && suspicious ? "refuse" : "warn",
    message: suspicious
      ? "The skill is always active, and other findings are suspicious."
      : "The skill is always active and claims every request.",
    file: "SKILL.md",
    line: lineOfAlways(skill),
    excerpt: skill.description.replace(/\s+/g, " ").slice(0, MAX_EXCERPT_LENGTH),
  };
}

function lineOfAlways({ bytes }: Skill): number {
  const lines = Buffer.from(bytes.subarray(0, 64 * 1024))
    .toString("utf8")
    .split("\n", 400);
  return Math.max(1, lines.findIndex((line) => /\balways\b["']?\s{0,3}:/.test(line)) + 1);
}

// Install steps. Nothing runs them here, but other clients do.

const MAX_INSTALL_STEPS = 50;

function installStepFindings(subject: Subject, document: string): SkillFinding[] {
  const findings: SkillFinding[] = [];
  for (const { kind, step } of subject.skill.install.slice(0, MAX_INSTALL_STEPS)) {
    const { url } = step;
    if (kind.toLowerCase() !== "download" || typeof url !== "string") continue;
    const address = addressOf(url.trim().toLowerCase());
    const severity = address === undefined ? "note" : stepSeverity(address, subject);
    if (severity === undefined) continue;
    findings.push({
      code: "download_and_run",
      severity,
      message: `An install step downloads a program from ${address === undefined ? "an address that cannot be read" : describeAddress(address)}.`,
      file: "SKILL.md",
      line: lineAtOffset(document, document.indexOf(url)),
      excerpt: excerptOf(url, 0, Math.min(url.length, MAX_EXCERPT_LENGTH)) || kind,
    });
  }
  return findings;
}

function stepSeverity(address: Address, subject: Subject): SkillSeverity | undefined {
  if (isSuspicious(address) || address.kind === "paste") return "refuse";
  switch (address.kind) {
    case "installer":
    case "local":
    case "private":
    case "example":
      return undefined;
    case "forge":
      return subject.isOwn(address) ? undefined : "note";
    default:
      return subject.isOwn(address) && !address.plainHttp ? "note" : "warn";
  }
}

// Frontmatter values that the text does not show as they are: escapes, folded lines, JSON in JSON.

const MAX_VALUES = 500;
const MIN_VALUE_LENGTH = 8;

interface HiddenValue {
  /** On one line. */
  readonly value: string;
  /** Of the key at the top that it belongs to. */
  readonly line: number;
}

/** Only values that the document does not contain verbatim. */
export function frontmatterValues(frontmatter: JsonObject, document: string): HiddenValue[] {
  const values: HiddenValue[] = [];
  const pending: { value: unknown; key: string }[] = Object.entries(frontmatter).map(([key, value]) => ({
    value,
    key,
  }));
  for (let seen = 0; pending.length > 0 && seen < MAX_VALUES; seen += 1) {
    const { value, key } = pending.pop() ?? { value: undefined, key: "" };
    if (typeof value === "string") {
      if (value.length < MIN_VALUE_LENGTH || document.includes(value)) continue;
      values.push({ value: value.replaceAll(/[\r\n]+/g, " "), line: lineOfKey(document, key) });
    } else if (Array.isArray(value)) {
      for (const element of value.slice(0, MAX_VALUES)) pending.push({ value: element, key });
    } else if (isJsonObject(value)) {
      for (const member of Object.values(value).slice(0, MAX_VALUES)) pending.push({ value: member, key });
    }
  }
  return values;
}

function lineOfKey(document: string, key: string): number {
  return lineAtOffset(document, document.startsWith(`${key}:`) ? 0 : document.indexOf(`\n${key}:`) + 1);
}

function lineAtOffset(document: string, offset: number): number {
  return new LineNumbers(document).of(Math.max(0, offset));
}

/** Milliseconds. Steps between two looks at the clock may be as long again. */
const SLICE_MS = 20;

export class TimeSlicer {
  readonly #now: () => number;
  #since: number;

  /** @param now milliseconds from any start */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#since = now();
  }

  /** Cheap when there is nothing to give. */
  isDue(): boolean {
    return this.#now() - this.#since >= SLICE_MS;
  }

  async pause(): Promise<void> {
    await setImmediate();
    this.#since = this.#now();
  }

  async run<Result>(steps: Generator<undefined, Result>): Promise<Result> {
    let next = steps.next();
    while (next.done !== true) {
      if (this.isDue()) await this.pause();
      next = steps.next();
    }
    return next.value;
  }
}

// Files that a skill does not need, recognised by their first bytes, names and modes.

interface Format {
  readonly name: string;
  readonly bytes: readonly number[];
  readonly at?: number;
}

const PROGRAMS: readonly Format[] = [
  { name: "a Linux program (ELF)", bytes: [0x7f, 0x45, 0x4c, 0x46] },
  { name: "a Windows program (PE)", bytes: [0x4d, 0x5a] },
  { name: "a macOS program (Mach-O)", bytes: [0xcf, 0xfa, 0xed, 0xfe] },
  { name: "a macOS program (Mach-O)", bytes: [0xce, 0xfa, 0xed, 0xfe] },
  { name: "a macOS program (Mach-O)", bytes: [0xfe, 0xed, 0xfa, 0xcf] },
  { name: "a macOS program or a Java class", bytes: [0xca, 0xfe, 0xba, 0xbe] },
  { name: "a macOS installer", bytes: [0x78, 0x61, 0x72, 0x21] },
  { name: "a Windows installer", bytes: [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1] },
  { name: "a Windows shortcut", bytes: [0x4c, 0x00, 0x00, 0x00, 0x01, 0x14, 0x02, 0x00] },
];
const ZIP = [0x50, 0x4b, 0x03, 0x04];
const ARCHIVES: readonly Format[] = [
  { name: "zip", bytes: ZIP },
  { name: "rar", bytes: [0x52, 0x61, 0x72, 0x21] },
  { name: "7z", bytes: [0x37, 0x7a, 0xbc, 0xaf] },
  { name: "gzip", bytes: [0x1f, 0x8b] },
  { name: "xz", bytes: [0xfd, 0x37, 0x7a, 0x58, 0x5a] },
];

const PROGRAM_NAME =
  /\.(?:exe|dll|dmg|pkg|msi|scr|com|cpl|lnk|hta|vbs|vbe|jse|wsf|app|deb|rpm|apk|appimage|jar|so|dylib|node|elf|bin|run)$/i;
const INSTALLER_NAME = /\.(?:exe|dmg|pkg|msi|scr|cpl|lnk|hta|vbs|vbe|jse|wsf)$/i;
const DOUBLE =
  /\.(?:pdf|docx?|xlsx?|txt|png|jpe?g|md|csv|html?)\.(?:exe|scr|com|bat|cmd|vbs|js|lnk|hta|sh|command|ps1|app|msi)$/i;
const HARMLESS_NAME =
  /\.(?:md|txt|png|jpe?g|gif|svg|webp|ico|pdf|csv|json|ya?ml|html?|css|ttf|woff2?|otf|mp[34]|wav|xml|toml|log|dat)$/i;
const OFFICE =
  /\.(?:docx|xlsx|pptx|docm|xlsm|pptm|odt|ods|odp|epub|jar|apk|whl|vsix|crx|dotx|potx|xltx|msi|doc|xls|ppt|skill)$/i;
/** Places where programs are expected. */
const PROGRAM_PLACE = /(?:^|\/)(?:scripts?|bin|tools?|hooks?|examples?|tests?|src|lib|cli|commands?|dist|build)\//i;
const SCRIPT_NAME = /\.(?:sh|bash|zsh|py|js|mjs|cjs|ts|rb|pl|ps1|bat|cmd|command|fish|lua|php|r|go|rs)$/i;
/** Dot files that every project has. */
const USUAL_DOT =
  /^\.(?:git(?:ignore|attributes|keep|modules)|env\.(?:example|sample|template)|editorconfig|prettier\S*|eslint\S*|npmignore|npmrc|nvmrc|node-version|python-version|tool-versions|dockerignore|markdownlint\S*|clawhub\S*|claude\S*|mcp\.json|github|vscode|pre-commit\S*|flake8|pylintrc|ruff\.toml|babelrc|browserslistrc|shellcheckrc|yamllint\S*|DS_Store|keep|env|envrc|gitlab-ci\.yml|travis\.yml|nojekyll|clang-format|coveragerc|openclaw\S*|skillignore|well-known|cursor\S*|agents?|codex\S*|gemini\S*|mise\.toml|oxlintrc\.json|swiftlint\.yml|rubocop\.yml)$/i;

export const HEAD_BYTES = 64;

function starts(head: Uint8Array, { bytes, at = 0 }: Format): boolean {
  return head.length >= at + bytes.length && bytes.every((byte, index) => head[at + index] === byte);
}

function fileFindings(file: SkillFile, head: Uint8Array, isText: boolean, allExecutable: boolean): SkillFinding[] {
  const found: SkillFinding[] = [];
  const { path } = file;
  const name = path.split("/").at(-1) ?? path;
  const add = (severity: SkillFinding["severity"], message: string, code = "unexpected_executable"): void => {
    found.push({ code, severity, message, file: path, line: 1, excerpt: name.slice(0, MAX_EXCERPT_LENGTH) });
  };
  const program =
    isText || (OFFICE.test(name) && !INSTALLER_NAME.test(name))
      ? undefined
      : PROGRAMS.find((format) => starts(head, format));
  const hidden = path.split("/").some((part) => part.startsWith(".") && !USUAL_DOT.test(part));
  if (DOUBLE.test(name)) add("refuse", "The name suggests a document, but the file is a program.");
  else if (program !== undefined && HARMLESS_NAME.test(name))
    add("refuse", `The file is ${program.name}, despite its name.`);
  else if (program !== undefined && hidden) add("refuse", `The file is ${program.name} in a hidden folder or file.`);
  else if (program !== undefined) add("warn", `The file is ${program.name}, so what it does cannot be read.`);
  else if (PROGRAM_NAME.test(name) && !isText && file.size > 0)
    add(INSTALLER_NAME.test(name) ? "warn" : "note", "The file is a program, so what it does cannot be read.");
  else if (isText && INSTALLER_NAME.test(name) && file.size > 0) add("warn", "The file is a program by its name.");
  else if (/\.pyc$/i.test(name)) add("note", "The file is compiled Python, so what it does cannot be read.");
  if (program === undefined && !isText && !OFFICE.test(name)) {
    const archive = ARCHIVES.find((format) => starts(head, format));
    // The lowest bit of the flags of a zip's first entry says that it is encrypted.
    const locked = archive?.name === "zip" && ((head[6] ?? 0) & 1) === 1;
    if (locked) add("refuse", "The archive has a password, which keeps scanners out.", "locked_archive");
    else if (archive !== undefined && !/\.(?:woff2?|svgz)$/i.test(name))
      add("note", `The contents of this ${archive.name} archive were not scanned.`, "unscanned");
  }
  const isCode = isText && (SCRIPT_NAME.test(name) || (head[0] === 0x23 && head[1] === 0x21));
  if (hidden && isCode) add("warn", "A program is in a hidden file.", "hidden_code");
  if (file.executable && !allExecutable && isText && !isCode && !PROGRAM_PLACE.test(path))
    add("note", "The file is executable, although neither its name nor its folder suggests a program.");
  return found;
}
