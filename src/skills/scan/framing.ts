/** Words that make a reader do something before anything else. Honest guides have some of them, rarely all at once. */
import { around, type ScannedText } from "./scanned-text.ts";

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
  const near = around(text, index, ABOVE, BELOW).filter(
    ({ heading, frontmatter }) => heading === line.heading && frontmatter === line.frontmatter,
  );
  return [line.heading, ...near.map(({ text: words }) => words)].join("\n");
}
