/** How bad it is to run what comes from an address. One judgement for all ways of fetching and running. */
import type { SkillSeverity } from "../../model/skill.ts";
import { type Address, isSuspicious } from "./addresses.ts";
import { linesAround, type ScannedLine, type ScannedText } from "./scanned-text.ts";
import type { Subject } from "./subject.ts";

interface SourceRisk {
  readonly severity: SkillSeverity;
  /** Ends the sentence "It is fetched …". */
  readonly why: string;
}

const RUN_AT_LOAD = /(?:^|\s)!`/;
/** It runs in the background with its output discarded. */
const RUNS_UNSEEN =
  /\b(?:ba|z|da)?sh\b[^|]{0,40}(?:&?>{1,2}|\d>)\s{0,2}\/dev\/null[^|]{0,16}&\s{0,3}["'`)]{0,3}\s{0,3}$|\bnohup\b.{0,200}&\s{0,3}$/;
const UNCHECKED = /(?:^|\s)(?:-[a-z]{0,6}k[a-z]{0,6}|--insecure|--no-check-certificate|-skipcertificatecheck)(?=\s|$)/;

export function sourceRisk(
  addresses: readonly Address[],
  { text, line, index, subject }: { text: ScannedText; line: ScannedLine; index: number; subject: Subject },
): SourceRisk {
  const outside = addresses.filter(({ kind }) => kind !== "local");
  const [first] = outside;
  if (first === undefined)
    return addresses.length > 0
      ? { severity: "note", why: "from this machine" }
      : { severity: "warn", why: "from an address that is not on the line" };
  const suspicious = outside.find(isSuspicious);
  if (suspicious !== undefined) return { severity: "refuse", why: `from ${describeAddress(suspicious)}` };
  const paste = outside.find(({ kind }) => kind === "paste");
  if (paste !== undefined && !paste.host.startsWith("gist."))
    return { severity: "refuse", why: `from ${describeAddress(paste)}` };
  const isKnown = outside.every(({ kind }) => kind === "installer");
  if (isKnown) return { severity: "warn", why: `from ${first.host}, a known installer` };
  const own = subject.isOwn(first);
  const reached = first.kind !== "private" && first.kind !== "example";
  if (reached && first.plainHttp) return { severity: "refuse", why: `from ${first.host} over unencrypted http` };
  if (reached && UNCHECKED.test(line.plain))
    return { severity: "refuse", why: `from ${first.host} without checking the certificate` };
  if (reached && first.host.includes("xn--"))
    return { severity: "refuse", why: `from ${first.host}, a name with look-alike letters` };
  if (reached && RUNS_UNSEEN.test(line.plain))
    return { severity: "refuse", why: `from ${first.host}, unseen and in the background` };
  if (reached && line.hidden)
    return { severity: "refuse", why: `from ${first.host}, in a comment that pages do not show` };
  if (reached && !own && RUN_AT_LOAD.test(line.raw))
    return { severity: "refuse", why: `from ${first.host} as soon as the skill is loaded` };
  if (reached && !own && isDemanded(text, index))
    return {
      severity: "refuse",
      why: `from ${first.host}, which is required before the skill can be used and is unrelated to it`,
    };
  return { severity: "warn", why: `from ${describeAddress(first)}` };
}

export function describeAddress({ kind, host }: Address): string {
  switch (kind) {
    case "number":
    case "example number":
      return `the bare address ${host}`;
    case "shortener":
      return `${host}, which hides its target`;
    case "paste":
      return `${host}, where anyone can publish anything`;
    case "drop":
      return `${host}, a tunnel or a service that collects requests`;
    case "free page":
      return `${host}, a free page without a named owner`;
    default:
      return host;
  }
}

// Words that urge a reader to do something first. Honest guides have some of them, rarely all at once.

const DEMAND =
  /\b(?:must|mandatory|required|requires?|required to|need(?:s|ed)? to|have to|has to|important|necessary|essential|critical|pre-?requisites?|will not (?:work|function)|won'?t (?:work|function)|cannot (?:work|function|be used)|does(?: not|n'?t) (?:work|function) without|depends on|only works (?:if|after|when|once))\b/;
const BEFORE =
  /\bbefore (?:using|running|you|proceeding|continuing|continue|starting|any|the (?:first|skill)|this (?:skill|can)|it (?:can|works)|everything|activat\w{1,4}|invok\w{1,4})\b|\bprior to\b|\botherwise\b|\bto (?:function|work|operate|activate|continue|proceed|run properly)\b|\b(?:first|initial) (?:step|of all|thing)\b|\bwithout (?:it|this)\b|\buntil\b|\bfails? (?:if|unless)\b|\bfor (?:the|this) skill to\b|\bor (?:else|nothing|it|the skill|this skill|everything)\b.{0,20}\b(?:works?|fails?|will|won'?t|does|breaks?)\b|\bhas to be (?:running|installed)\b|\bmust be (?:running|installed|present)\b/;
export const FETCH_WORD =
  /\b(?:download\w{0,4}|visit|go to|navigate to|open (?:the|this)|get it|grab|fetch|install(?:ed|er)?|obtain|from here|curl|wget|iwr|irm)\b/;
export const RUN_WORD =
  /\b(?:run|running|execut(?:e|ing)|launch|double-?click|start|install(?:ed|er)?|paste|open (?:it|the)|extract|unzip|unpack)\b/;
const ABOVE = 5;
const BELOW = 4;

/** The lines around say that this has to be done before the skill can be used. */
export function isDemanded(text: ScannedText, index: number): boolean {
  const words = wordsAround(text, index);
  return DEMAND.test(words) && BEFORE.test(words);
}

/** Something is called necessary. */
export function isDemand(words: string): boolean {
  return DEMAND.test(words);
}

/** The block around a line, with the heading above it. */
export function wordsAround(text: ScannedText, index: number): string {
  const line = text.lines[index];
  if (line === undefined) return "";
  const near = linesAround(text, index, ABOVE, BELOW).filter(
    ({ heading, frontmatter }) => heading === line.heading && frontmatter === line.frontmatter,
  );
  return [line.heading, ...near.map(({ text: words }) => words)].join("\n");
}
