/** Instructions that come from a server each time: whoever has it decides what the agent does next. */
import { addressesIn, isShady } from "../addresses.ts";
import { around, type ScannedText } from "../scanned-text.ts";
import type { Sign } from "../sign.ts";
import type { Subject } from "../subject.ts";
import { LINES_PER_TURN, type Rule } from "./rule.ts";

const FOLLOWED =
  /\b(?:fetch|curl|read|load|download|open|visit|get|retrieve|pull)\b[^.\n]{0,80}:\/\/\S{1,200}.{0,80}\b(?:and|then|,)\s{1,3}(?:always |then |immediately |silently |exactly )?(follow|execute|run|obey|do|perform|carry out|act on)\b(?! (?:the|its|their|these|those) (?:setup|install\w{0,6}|guide|link|steps|docs|documentation))/;
const BLINDLY =
  /\bwithout (?:asking|confirm\w{0,6}|question\w{0,4}|telling|review\w{0,4}|show\w{0,4}|mention\w{0,4})|\bsilently\b|\bwhatever it (?:says|contains|returns)\b|\b(?:all|any|every|the) (?:\w{1,12} )?(?:commands?|code|shell)\b|\bexactly as\b|\bno matter what\b/;

export const remoteInstructions: Rule = { hint: /:\/\//, find };

function* find(text: ScannedText, subject: Subject): Generator<Sign | undefined> {
  if (text.kind !== "instructions") return;
  for (const [index, line] of text.lines.entries()) {
    if (index % LINES_PER_TURN === 0) yield undefined;
    if (line.fenced || !line.text.includes("://")) continue;
    const followed = FOLLOWED.exec(line.text);
    const address =
      followed === null ? undefined : addressesIn(line.text).find(({ kind }) => kind !== "local" && kind !== "private");
    if (followed === null || address === undefined) continue;
    const words = around(text, index, 0, 1)
      .map((near) => near.text)
      .join(" ")
      .slice(followed.index, followed.index + 600);
    const own = subject.isOwn(address);
    const blind = BLINDLY.test(words.replace(address.url, " "));
    yield {
      code: "remote_instructions",
      severity: isShady(address) || address.kind === "paste" || (blind && !own) ? "refuse" : own ? "note" : "warn",
      message: `The agent is told to do what ${address.host} says, which can be something else every time.`,
      line,
      concrete: true,
    };
  }
}
