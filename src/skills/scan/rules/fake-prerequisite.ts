/** "Before you can use this skill, download and run …": the way in which most malicious skills have come. */
import { type Address, addressesIn } from "../addresses.ts";
import { FETCH_WORD, isDemand, isDemanded, RUN_WORD, wordsAround } from "../framing.ts";
import { isImpersonating } from "../known-hosts.ts";
import { around, type ScannedText } from "../scanned-text.ts";
import type { Subject } from "../subject.ts";
import type { Sign } from "../sign.ts";
import { LINES_PER_TURN, type Rule } from "./rule.ts";

const TERMINAL =
  /\b(?:copy|paste|pasting|copying|enter|run|execute)\b[^.\n]{0,100}\b(?:terminal|powershell|command (?:prompt|line)|console|cmd|win ?\+ ?r|run dialog)\b/;
const THEIRS = /\b(?:script|command|code|snippet|installation|instructions?|line)\b/;
const PROGRAM = /\.(?:zip|rar|7z|exe|msi|dmg|pkg|scr|bat|cmd|ps1|sh|apk|appimage|run|jar|iso|vbs|hta)(?:$|[?#])/;
const RUN_PROGRAM =
  /\b(?:as|to|into) \w{1,40}\.(?:ps1|sh|bat|cmd|py|command)\b[^.\n]{0,40}\brun\b|\b(?:run|execute|launch|start|double-?click|open)\b[^.\n]{0,60}\b(?:it|executable|exe|installer|file|program|binary|setup|utility|app|tool|agent|script|\w{1,40}\.(?:exe|dmg|pkg|msi|sh|bat|cmd))\b/;
const INSTALLER = /\.(?:exe|msi|dmg|pkg|scr|appimage|hta|vbs)(?:$|[?#])/;
const SYSTEMS = /\b(?:windows|mac ?os|macos|osx|linux)\b/;

export const fakePrerequisite: Rule = { hint: /:\/\//, find };

function* find(text: ScannedText, subject: Subject): Generator<Sign | undefined> {
  if (text.kind !== "instructions") return;
  let last = Number.NEGATIVE_INFINITY;
  for (const [index, line] of text.lines.entries()) {
    if (index % LINES_PER_TURN === 0) yield undefined;
    if (line.fenced || !line.text.includes("://")) continue;
    const address = addressesIn(line.text).find((one) => isSource(one));
    if (address === undefined) continue;
    const words = wordsAround(text, index);
    if (!FETCH_WORD.test(words) && !RUN_WORD.test(words) && !isImpersonating(address.host)) continue;
    const severity = severityOf(address, line.text, textAround(text, index), words, {
      demanded: isDemanded(text, index),
      own: subject.isOwn(address),
    });
    if (severity === undefined || index - last < 4) continue;
    last = index;
    yield {
      code: "fake_prerequisite",
      severity,
      message: `The skill wants something from ${address.host} to be downloaded and run before it can be used.`,
      line,
      near: address.url,
      concrete: true,
    };
  }
}

/** The line itself and those next to it. */
function textAround(text: ScannedText, index: number): string {
  return around(text, index, 2, 1)
    .map(({ text: words }) => words)
    .join("\n");
}

function isSource({ kind }: Address): boolean {
  return kind !== "local" && kind !== "private" && kind !== "installer" && kind !== "example";
}

const FETCHED =
  /\b(?:download\w{0,4}|visit|go to|navigate to|get (?:it|the \w{1,30}|\S{1,40}) (?:from|here|at)|available (?:at|from|here)|grab|install\w{0,4}(?: it)?(?: \([^)\n]{0,40}\))? from|obtain|fetch)\b/;
const INSTALLED =
  /\b(?:download|install|get)\w{0,4}\b[^\n]{0,60}\b(?:from|at|via|here|first)\b|\brequired?s?\b[^\n]{0,60}\binstall/;
const SET_UP = /\b(?:set-?up|install\w{0,6}|download\w{0,4}|get started|requires?|required)\b/;

function severityOf(
  address: Address,
  line: string,
  beside: string,
  words: string,
  { demanded, own }: { demanded: boolean; own: boolean },
): "refuse" | "warn" | undefined {
  if (isImpersonating(address.host) && address.kind !== "forge" && SET_UP.test(line.replace(address.url, " ")) && !own)
    return "refuse";
  const isPage = TERMINAL.test(words) && THEIRS.test(words);
  const isProgram = PROGRAM.test(address.path) || RUN_PROGRAM.test(words);
  switch (address.kind) {
    case "paste":
    case "shortener":
    case "drop":
    case "number":
    case "example number":
      return isPage || (isProgram && RUN_WORD.test(beside)) || (demanded && FETCHED.test(words)) ? "refuse" : undefined;
    case "free page":
      // Being named after the skill costs nothing there.
      if (!FETCHED.test(words)) return undefined;
      return isPage || (isDemand(words) && INSTALLED.test(beside) && (!own || INSTALLED.test(line)))
        ? "refuse"
        : undefined;
    case "forge":
      // A release of a project that has nothing to do with the skill, to be run by hand.
      if (!FETCHED.test(words) || !demanded || own || !PROGRAM.test(address.path) || !RUN_PROGRAM.test(words))
        return undefined;
      return SYSTEMS.test(words) ? "refuse" : "warn";
    default:
      if (own || !FETCHED.test(words)) return undefined;
      // A packed program to be started by hand, demanded or not.
      if (INSTALLER.test(address.path) && isDemand(beside)) return isNamed(address, words) ? "warn" : "refuse";
      if (!demanded) return PROGRAM.test(address.path) && RUN_PROGRAM.test(beside) ? "warn" : undefined;
      if (!isPage && !isProgram) return undefined;
      return isNamed(address, words) ? "warn" : "refuse";
  }
}

/** The text speaks of a product by the name of the site. */
function isNamed({ host, url }: Address, words: string): boolean {
  const label = host.split(".").at(-2) ?? "";
  return label.length >= 3 && words.replaceAll(url, " ").includes(label);
}
