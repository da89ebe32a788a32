/** Credentials that a skill reads from the environment without declaring them. */
import type { SkillFinding } from "../../../model/skill.ts";
import { findingOf, type Sign } from "../rule.ts";
import type { ScannedLine, ScannedText } from "../scanned-text.ts";
import type { Subject } from "../subject.ts";

const READS =
  /\bprocess\.env(?:\.|\[\s?["'])([A-Z][A-Z0-9_]{3,60})|\bos\.(?:environ(?:\.get\(|\[)|getenv\()\s?["']([A-Z][A-Z0-9_]{3,60})|\b(?:getenv|env\.get|env::var)\(\s?["']([A-Z][A-Z0-9_]{3,60})|\$env:([A-Za-z][A-Za-z0-9_]{3,60})|\bENV\[\s?["']([A-Z][A-Z0-9_]{3,60})|\$\{?([A-Z][A-Z0-9_]{3,60})\b/g;
const CREDENTIAL =
  /(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|MNEMONIC|PAT|APIKEY)(?:_|$)|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY/;
/** Tokens of currencies and of language models, and names that are too generic. */
const NO_CREDENTIAL =
  /^(?:INPUT|OUTPUT|SRC|DEST|FROM|TO|SELL|BUY|BASE|QUOTE|MAX|MIN|TOTAL)_|TOKEN_(?:ADDRESS|ID|IN|OUT|COUNT|LIMIT|AMOUNT|SYMBOL|NAME|URI|FILE)|^(?:TOKEN|KEY|PASSWORD)$|_TOKENS$|_(?:PATH|FILE|DIR|NAME|LENGTH|ADDRESS)$/;
const MAX_REPORTED = 8;
const MAX_NAMES = 50;
const MAX_READ_NAMES = 500;

/** The number of names in instructions; more than any honest skill has. */
const MAX_MENTIONED_NAMES = 20_000;

/** Reads texts one by one and keeps only names; one file may mention what another does not. */
export class UndeclaredEnv {
  readonly #subject: Subject;
  readonly #declared: ReadonlySet<string>;
  readonly #mentioned = new Set<string>();
  /** The instructions in lower case, for the names of products. */
  readonly #instructions: string[] = [];
  readonly #read = new Map<string, SkillFinding>();
  readonly #shown = new Map<string, SkillFinding>();

  constructor(subject: Subject) {
    this.#subject = subject;
    this.#declared = declaredNames(subject.skill);
  }

  add(text: ScannedText): void {
    if (text.kind === "data") return;
    if (text.kind === "instructions") this.#noteMentioned(text.raw);
    const names = text.kind === "script" ? this.#read : text === this.#subject.document ? this.#shown : undefined;
    if (names === undefined) return;
    for (const [name, line] of readNames(text)) {
      if (this.#declared.has(name) || names.has(name) || names.size >= MAX_READ_NAMES) continue;
      const sign: Sign = {
        code: "undeclared_env",
        severity: "warn",
        message: `The program reads ${name}, which the skill's instructions never mention.`,
        line,
        near: name,
      };
      names.set(name, findingOf(sign, text, this.#subject));
    }
  }

  /** After the last text. */
  findings(): SkillFinding[] {
    const found: SkillFinding[] = [];
    for (const [name, finding] of this.#read) {
      if (this.#mentioned.has(name)) continue;
      const product = name.split("_")[0]?.toLowerCase() ?? "";
      const isAbout = product.length >= 3 && this.#instructions.some((text) => text.includes(product));
      found.push({ ...finding, severity: isAbout ? "note" : "warn" });
      if (found.length >= MAX_REPORTED) break;
    }
    const first = this.#shown.values().next().value;
    // Only this dialect can declare them.
    if (this.#subject.skill.dialect === "openclaw" && first !== undefined) {
      const names = [...this.#shown.keys()];
      const list = names.slice(0, MAX_REPORTED).join(", ") + (names.length > MAX_REPORTED ? ", …" : "");
      const message = `Credentials are read from the environment without being declared in requires.env: ${list}.`;
      found.push({ ...first, severity: "note", message });
    }
    return found;
  }

  #noteMentioned(raw: string): void {
    this.#instructions.push(raw.toLowerCase());
    for (const [name] of raw.matchAll(/[A-Za-z][A-Za-z0-9_]{3,60}/g)) {
      if (this.#mentioned.size >= MAX_MENTIONED_NAMES) return;
      if (CREDENTIAL.test(name)) this.#mentioned.add(name);
    }
  }
}

function declaredNames({ needs, primaryEnv, servers }: Subject["skill"]): Set<string> {
  const names = new Set(needs.env);
  if (primaryEnv !== undefined) names.add(primaryEnv);
  for (const { parameters, template } of servers) {
    for (const { name } of parameters) names.add(name);
    for (const name of Object.keys(template?.env ?? {})) names.add(name);
  }
  return names;
}

/** Each name once, up to a limit: every one is searched for in the texts. */
function readNames(text: ScannedText): Map<string, ScannedLine> {
  const names = new Map<string, ScannedLine>();
  const seen = new Set<string>();
  for (const line of text.lines) {
    if (!line.raw.includes("$") && !/env/i.test(line.raw)) continue;
    for (const found of line.raw.matchAll(READS)) {
      const name = found.slice(1).find((group) => group !== undefined) ?? "";
      if (seen.has(name) || !CREDENTIAL.test(name) || NO_CREDENTIAL.test(name)) continue;
      seen.add(name);
      // A script's own variable is not read from the environment.
      if (!isOwn(text, name)) names.set(name, line);
      if (seen.size >= MAX_NAMES) return names;
    }
  }
  return names;
}

function isOwn({ raw }: ScannedText, name: string): boolean {
  return [`${name}=$(`, `${name}="$(`, `${name}=\``, `read ${name}`, `read -s ${name}`].some((own) =>
    raw.includes(own),
  );
}
