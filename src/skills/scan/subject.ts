/** The subject of a skill: a skill about a product names the product's own site. */
import type { Skill } from "../../model/skill.ts";
import type { Address } from "./addresses.ts";
import type { ScannedLine, ScannedText } from "./scanned-text.ts";

export interface Subject {
  readonly skill: Skill;
  readonly document: ScannedText;
  /** It is about attacks and defence. */
  readonly security: boolean;
  /** The host belongs to the skill's subject: its name, its homepage, or a site that it mentions throughout. */
  isOwn(address: Address): boolean;
}

/** Parts of names that say nothing about whose they are. */
const COMMON = new Set(
  "the and for skill skills agent agents api cli app apps get www install installer setup download downloads tool tools com org net dev io docs my use google open openclaw clawd claw claude cloud helper utility core update".split(
    " ",
  ),
);
const MIN_MENTIONS = 3;
const MAX_SITES = 100;

export function subjectOf(skill: Skill, document: ScannedText): Subject {
  let security: boolean | undefined;
  const words = new Set(
    `${skill.name} ${skill.homepage ?? ""} ${skill.author ?? ""}`
      .toLowerCase()
      .split(/[^a-z0-9]{1,20}/)
      .filter((word) => word.length >= 3 && !COMMON.has(word)),
  );
  const counts = new Map<string, number>();
  return {
    skill,
    document,
    get security() {
      return (security ??= isAboutSecurity(skill, document));
    },
    isOwn({ host, url }) {
      const site = siteOf(host);
      const owner =
        /^https?:\/\/(?:www\.|raw\.)?(?:github(?:usercontent)?|gitlab|codeberg|bitbucket)\.\w{2,3}\/([\w.-]{1,80})\/([\w.-]{1,80})/.exec(
          url,
        );
      const names = (owner === null ? site : `${owner[1]} ${owner[2]}`).toLowerCase().split(/[^a-z0-9]{1,20}/);
      if (names.some((name) => words.has(name) || [...words].some((word) => word.length >= 5 && name.includes(word))))
        return true;
      if (owner !== null) return false;
      let count = counts.get(site);
      // Each costs a reading of the document; a real one names few places.
      if (count === undefined && counts.size >= MAX_SITES) return false;
      if (count === undefined) counts.set(site, (count = mentions(document, site)));
      return count >= MIN_MENTIONS;
    },
  };
}

/** Roughly the registered domain: the last two labels, or three below `co.uk` and free pages. */
function siteOf(host: string): string {
  const parts = host.split(".");
  const short = parts.at(-2) ?? "";
  return parts
    .slice(
      short.length <= 3 || /^(?:vercel|netlify|pages|github|workers|herokuapp|onrender|web)$/.test(short) ? -3 : -2,
    )
    .join(".");
}

function mentions({ lines }: ScannedText, site: string): number {
  let count = 0;
  for (const { text } of lines) if (text.includes(site)) count += 1;
  return count;
}

// Whether a line only talks about an attack: security guides show commands as warnings.

/** 0: no. 1: the skill is about security. 2: the section or what leads in says so. 3: the line itself says so. */
type DefenceLevel = 0 | 1 | 2 | 3;

const ABOUT =
  /\b(?:malicious|malware|attackers?|attacks?|attacking|suspicious|dangerous|unsafe|insecure|vulnerab\w{1,8}|exploit\w{0,6}|red flags?|backdoor\w{0,3}|trojans?|threats?|payloads?|injections?|exfiltrat\w{1,5}|reverse shells?|anti-?patterns?|indicators?|block ?list\w{0,3}|block(?:s|ed)|detect\w{0,6}|flag(?:s|ged)|reject\w{0,5}|forbidden|prohibited|den(?:y|ied|ies)|phishing|adversar\w{1,5}|hijack\w{0,4}|compromis\w{1,4}|poison\w{0,4}|supply.chain|untrusted|risky?|obfuscat\w{1,5}|pentest\w{0,4}|penetration test\w{0,4}|red.?team\w{0,4}|ctf|c2|beacon\w{0,4}|shellcode|bad|wrong|mitre|t1\d{3}|ioc|iocs|yara|sigma rules?)\b/;
const MARKED = /[\u2717\u2718\u274c\u{1f6ab}\u26d4\u{1f6a9}\u{1f534}]/u;
const FORBIDDEN =
  /\b(?:never|do not|don'?t|must not|should not|avoid|refuse to|no)\b.{0,40}\b(?:run|runs|running|execut\w{1,4}|pip(?:e|es|ing)|past(?:e|ing)|copy|trust|install\w{0,4}|download\w{0,4}|read|send\w{0,4}|access\w{0,4}|cat|expose|commit|share|log|print|curl|wget|disabl\w{1,4})\b/;
/** The other way round: these make sure that it is run. */
const URGED =
  /\b(?:do not|don'?t|never|cannot|can'?t)\b.{0,20}\b(?:continue|skip|proceed|forget|worry|close|hesitate|start|use|tell|mention|inform|ask|stop)\b|\b(?:macos|windows|system|browser|chrome|edge|it)\b.{0,20}\b(?:blocks?|blocked|warns?|flags?|flagged|complains?)\b|\bfalse positives?\b|\banti-?virus\b|\bdefender\b|\bsmartscreen\b|\bsecurity (?:warnings?|prompts?|software)\b|\bignore (?:the|any|all) (?:\w{1,20} )?(?:warnings?|alerts?)\b|\bbefore (?:using|running|you can)\b/;
const SETUP =
  /\b(?:pre-?requisites?|install\w{0,6}|set-?up|setting up|getting started|quick ?start|requirements?|required|activation|initiali[sz]\w{1,5}|bootstrap|first run|before you)\b/;
const TOPIC =
  /\b(?:securit\w{1,3}|malware|threat\w{0,3}|pentest\w{0,4}|penetration|red.?team\w{0,4}|exploit\w{0,6}|vulnerab\w{1,8}|forensics?|prompt.injection|injections?|attack\w{0,4}|phishing|incident response|firewall|ctf|hacking|hunting|adversar\w{1,4}|guardrails?|sandbox\w{0,4}|hardening)\b/;

const OWN_WORDS = /https?:\/\/\S{1,300}|`[^`\n]{1,400}`|"[^"\n]{1,400}"/g;
const REMARK = /(?:^|\s)(?:#|\/\/|--|::|rem )\s{0,4}(\D.{0,300})$/;

/** The skill's own subject is attacks and defence. */
function isAboutSecurity(skill: Pick<Skill, "name" | "description">, document: ScannedText): boolean {
  if (TOPIC.test(`${skill.name} ${skill.description}`.toLowerCase().replaceAll(/[-_]/g, " "))) return true;
  let lines = 0;
  for (const { text } of document.lines) if (ABOUT.test(text)) lines += 1;
  return lines >= 12 && lines * 25 >= document.lines.length;
}

export function defenceLevel(text: ScannedText, line: ScannedLine, securitySkill: boolean): DefenceLevel {
  if (line.hidden) return 0;
  if (speaksOfAttack(ownWords(text, line), line.raw)) return 3;
  if (text.kind === "script") return securitySkill && isLiteral(line) ? 2 : 0;
  if (speaksOfAttack(line.intro.replace(OWN_WORDS, " "), "")) return 2;
  // In a block that can be run a heading alone excuses no real address: it may be the name of what the skill does.
  if (!SETUP.test(line.heading) && speaksOfAttack(line.heading, "")) return line.fenced ? 1 : 2;
  return securitySkill && !SETUP.test(line.heading) ? 1 : 0;
}

/** The remark of a command, or a sentence without its quotations. */
function ownWords(text: ScannedText, line: ScannedLine): string {
  if (line.fenced || text.kind === "script") return REMARK.exec(line.text)?.[1] ?? "";
  return line.text.replace(OWN_WORDS, " ");
}

function speaksOfAttack(words: string, raw: string): boolean {
  if (URGED.test(words)) return false;
  return ABOUT.test(words) || FORBIDDEN.test(words) || (raw !== "" && MARKED.test(raw));
}

/** A pattern or a sample in a table of them: nothing on the line runs it. */
function isLiteral({ text }: ScannedLine): boolean {
  if (
    /\b(?:system|popen|exec|execsync|spawn|spawnsync|eval|check_output|check_call|subprocess|invoke-expression|iex|start-process)\b/.test(
      text,
    )
  )
    return false;
  return /^\s{0,40}(?:[rbuf]{0,2}["'`/({[]|["']?\w{1,40}["']?\s{0,3}[:=,(])/.test(text) && /["'`/]/.test(text);
}
