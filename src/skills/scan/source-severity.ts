/** How bad it is to run what comes from an address. One judgement for all ways of fetching and running. */
import type { SkillSeverity } from "../../model/skill.ts";
import { type Address, isShady } from "./addresses.ts";
import { isDemanded } from "./framing.ts";
import type { ScannedLine, ScannedText } from "./scanned-text.ts";
import type { Subject } from "./subject.ts";

export interface Judged {
  readonly severity: SkillSeverity;
  /** Ends the sentence "It is fetched …". */
  readonly why: string;
}

const RUN_AT_LOAD = /(?:^|\s)!`/;
/** Its output is thrown away and nobody waits for it. */
const UNSEEN =
  /\b(?:ba|z|da)?sh\b[^|]{0,40}(?:&?>{1,2}|\d>)\s{0,2}\/dev\/null[^|]{0,16}&\s{0,3}["'`)]{0,3}\s{0,3}$|\bnohup\b.{0,200}&\s{0,3}$/;
const UNCHECKED = /(?:^|\s)(?:-[a-z]{0,6}k[a-z]{0,6}|--insecure|--no-check-certificate|-skipcertificatecheck)(?=\s|$)/;

export function judgeSource(
  addresses: readonly Address[],
  { text, line, index, subject }: { text: ScannedText; line: ScannedLine; index: number; subject: Subject },
): Judged {
  const outside = addresses.filter(({ kind }) => kind !== "local");
  const [first] = outside;
  if (first === undefined)
    return addresses.length > 0
      ? { severity: "note", why: "from this machine" }
      : { severity: "warn", why: "from an address that the line does not show" };
  const shady = outside.find(isShady);
  if (shady !== undefined) return { severity: "refuse", why: `from ${nameOf(shady)}` };
  const paste = outside.find(({ kind }) => kind === "paste");
  if (paste !== undefined && !paste.host.startsWith("gist."))
    return { severity: "refuse", why: `from ${nameOf(paste)}` };
  const isKnown = outside.every(({ kind }) => kind === "installer");
  if (isKnown) return { severity: "warn", why: `from ${first.host}, a known installer` };
  const own = subject.isOwn(first);
  const reached = first.kind !== "private" && first.kind !== "example";
  if (reached && first.plainHttp) return { severity: "refuse", why: `from ${first.host} over unencrypted http` };
  if (reached && UNCHECKED.test(line.plain))
    return { severity: "refuse", why: `from ${first.host} without checking who answers` };
  if (reached && first.host.includes("xn--"))
    return { severity: "refuse", why: `from ${first.host}, a name of look-alike letters` };
  if (reached && UNSEEN.test(line.plain))
    return { severity: "refuse", why: `from ${first.host}, unseen and in the background` };
  if (reached && line.hidden)
    return { severity: "refuse", why: `from ${first.host}, in a comment that pages do not show` };
  if (reached && !own && RUN_AT_LOAD.test(line.raw))
    return { severity: "refuse", why: `from ${first.host} as soon as the skill is loaded` };
  if (reached && !own && isDemanded(text, index))
    return {
      severity: "refuse",
      why: `from ${first.host}, which is demanded before the skill can be used and has nothing to do with it`,
    };
  return { severity: "warn", why: `from ${nameOf(first)}` };
}

export function nameOf({ kind, host }: Address): string {
  switch (kind) {
    case "number":
    case "example number":
      return `the bare address ${host}`;
    case "shortener":
      return `${host}, which hides where it leads`;
    case "paste":
      return `${host}, where anybody puts anything`;
    case "drop":
      return `${host}, a tunnel or a collecting point`;
    case "free page":
      return `${host}, a free page without an owner's name`;
    default:
      return host;
  }
}
