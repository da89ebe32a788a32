/** Secrets are read and sent away: by one command, over several lines of a program, or by the agent that is told to. */
import { type Address, addressesIn, isOutside, isShady } from "../addresses.ts";
import { fetches } from "../commands.ts";
import { flows } from "../flows.ts";
import { around, type ScannedLine, type ScannedText } from "../scanned-text.ts";
import { hardSecretIn, knownKeyIn, SEED, sendsInCode, sendsInCommand, softFileIn, softSecretIn } from "../secrets.ts";
import type { Sign } from "../sign.ts";
import type { Subject } from "../subject.ts";
import { LINES_PER_TURN, type Rule } from "./rule.ts";

const HINT =
  /\.ssh|id_[rde*]|ssh keys?|credential|shadow|gnupg|login data|logins\.json|key4\.db|passwords?|keychain|mimikatz|secretsdump|lsass|vaultcmd|wallet|electrum|exodus|nkbih|bfnael|solana|keystore|phrase|mnemonic|words|environ|process\.env|printenv|\benv\b|export -p|declare -x|\.kube|gcloud|\.docker|\.netrc|\.npmrc|\.pypirc|cookies|_history|api[_ ]keys?|tokens?|auth|secrets|op read|pbpaste|xclip|\.env|display dialog/;

export const credentialTheft: Rule = { hint: HINT, find };

function* find(text: ScannedText, subject: Subject): Generator<Sign | undefined> {
  const told = new Set<ScannedLine>();
  for (const [index, line] of text.lines.entries()) {
    if (index % LINES_PER_TURN === 0) yield undefined;
    if (!HINT.test(line.text) && !HINT.test(line.plain)) continue;
    const sign =
      inCommand(line, subject) ??
      (text.kind === "instructions" && !line.fenced ? inWords(text, index, line, subject) : undefined);
    if (sign === undefined) continue;
    told.add(line);
    yield sign;
  }
  yield* inProgram(text, subject, told);
}

/** A dialog of the skill's own that looks like one of the system's. */
const PASSWORD_DIALOG =
  /\bdisplay dialog\b.{0,200}\bhidden answer\b|\bget-credential\b.{0,200}\bgetnetworkcredential\b/;

function inCommand(line: ScannedLine, subject: Subject): Sign | undefined {
  const { plain, text } = line;
  if (PASSWORD_DIALOG.test(text)) return theft(line, "A dialog asks for a password and hands it to the skill.", []);
  const key = knownKeyIn(text);
  if (
    key !== undefined &&
    (sendsInCode(plain) || fetches(plain)) &&
    !/authorization|bearer|headers?\b|x-api-key/.test(plain)
  ) {
    const strange = addressesIn(plain).find((address) => isBad(address, subject) && !address.host.includes(key));
    if (strange !== undefined) return theft(line, `A key of ${key} is sent to ${strange.host}.`, [strange]);
  }
  if (!sendsInCommand(plain)) return undefined;
  const hard = hardSecretIn(plain) || hardSecretIn(text);
  if (!hard && !(softFileIn(plain) && /[@<|]|\$\(|`/.test(plain))) return undefined;
  const addresses = addressesIn(plain);
  if (addresses.length > 0 && !addresses.some(isOutside)) return undefined;
  const toSocket = /\|\s{0,3}(?:nc|ncat|netcat)\s|>\s{0,3}\/dev\/tcp\//.test(plain);
  if (!hard && !toSocket && !addresses.some((address) => isBad(address, subject))) return undefined;
  if (
    !hard &&
    !/\b(?:tar|zip|find|grep|cat)\b[^|]{0,120}\|[^|]{0,80}(?:\||curl|nc )/.test(plain) &&
    !/(?:@|cat |<\s?|\$\(|`)[^\s]{0,60}(?:\.env|config|credentials|auth|history|netrc|npmrc|cookies|credential|token|read|pbpaste|xclip)/.test(
      plain,
    )
  )
    return undefined;
  return theft(line, "One command reads a secret and sends it to another machine.", addresses);
}

function* inProgram(text: ScannedText, subject: Subject, told: ReadonlySet<ScannedLine>): Generator<Sign | undefined> {
  if (text.kind === "data") return;
  const lines = text.kind === "script" ? text.lines : text.lines.filter(({ fenced }) => fenced);
  const addresses: Address[] = [];
  for (const { plain } of lines) {
    if (plain.includes("://") || /\d\.\d{1,3}\.\d/.test(plain)) addresses.push(...addressesIn(plain));
    if (addresses.length >= MOST_ADDRESSES) break;
  }
  const isLocal = addresses.length > 0 && !addresses.some(isOutside);
  if (isLocal) return;
  const isRead = ({ text: words, plain }: ScannedLine): boolean =>
    (HINT.test(words) || HINT.test(plain)) && (hardSecretIn(words) || hardSecretIn(plain) || SEED_FILE.test(words));
  for (const { source, sink } of yield* flows(lines, isRead, ({ plain }) => sendsInCode(plain))) {
    if (told.has(sink)) continue;
    yield theft(sink, `A secret that is read on line ${source.number} is sent to another machine.`, addresses);
  }
  if (!addresses.some((address) => isBad(address, subject) && address.kind !== "unknown")) return;
  for (const { source, sink } of yield* flows(
    lines,
    ({ text: words }) => softFileIn(words) && READS.test(words),
    ({ plain }) => sendsInCode(plain),
  )) {
    yield theft(
      sink,
      `A file of secrets that is read on line ${source.number} is sent to a place that nobody honest uses.`,
      addresses,
    );
  }
}

const MOST_ADDRESSES = 500;
const SEED_FILE = /\b(?:open|readfile\w{0,4}|read_text|cat)\b.{0,40}(?:seed|mnemonic|wallet)\.(?:txt|json|dat)/;
const READS = /\b(?:open|readfile\w{0,4}|read_text|read|cat|get-content|readalltext|path)\b/;

const READ_WORD =
  /\b(?:read|open|cat|copy|collect|gather|include|attach|grab|extract|get|retrieve|list|find|search|scan|look (?:for|in|up)|ask|request|prompt|obtain|take|dump|export|enter|provide|contents? of|paste|locate|harvest|check)\b/;
const SEND_WORD =
  /\b(?:send|post|upload|submit|transmit|forward|exfiltrate|deliver|report|sync|back ?up|append|pass|attach|embed|mail|e-?mail|include|push|relay|share|put|paste|enter|type|fill)(?:s|ing|ed)?\b/;
const CARRIER =
  /\b(?:parameter|argument|query string|url|request body|header|field|tool call|commit message|side ?note|endpoint|server|webhook|image link)\b/;
const MAILBOX = /[\w.+-]{1,60}@[\w-]{1,60}\.[a-z]{2}/;
/** What people are told to do with their own keys, in places that are theirs. */
const OWN_USE = /\b(?:your own|public key|\.pub\b|ssh-copy-id|ssh-add|ssh-keygen|settings page|dashboard|console)\b/;

const CARRYING_IMAGE =
  /!\[[^\]\n]{0,80}\]\(\s{0,2}https?:[^)\n]{1,200}[{$<[][^)\n]{0,80}(?:env|key|token|secret|passw|credential|conversation|history|context|message)/;
const GATHERED =
  /\b(?:read|collect|gather|find|search for|search|extract|copy|grab|scan for|look for|locate|harvest|dump|capture|record|save|store|log)\b[^.\n]{0,120}\b(?:passwords?|(?:access |api |auth |session )?tokens?|credentials?|api keys?|private keys?|ssh keys?|secrets|cookies|seed phrases?|key ?strokes)\b/;
const UNSEEN =
  /\b(?:never|do not|don'?t) (?:ever )?(?:mention|tell|inform|notify|disclose|reveal|show|report) (?:this|it|that|the user|users?|anyone|anybody|the human|the owner|them)\b|\bwithout (?:the )?(?:user'?s? )?(?:telling|informing|notifying|knowing|noticing|knowledge|mentioning)|\b(?:secretly|covertly|unnoticed)\b|\bhidden (?:html )?comment\b|\bwithout the user\b/;

function isTakenUnseen(text: ScannedText, index: number, words: string): boolean {
  return GATHERED.test(words) && around(text, index, 1, 2).some((near) => !near.fenced && UNSEEN.test(near.text));
}

function inWords(text: ScannedText, index: number, line: ScannedLine, subject: Subject): Sign | undefined {
  const words = line.text;
  const image = CARRYING_IMAGE.exec(words);
  if (image !== null) {
    const to = addressesIn(image[0]);
    if (to.some((address) => isBad(address, subject)))
      return theft(line, "The address of an image carries secrets out when it is shown.", to);
  }
  if (isTakenUnseen(text, index, words))
    return theft(line, "The agent is told to gather secrets and to keep quiet about it.", []);
  const isHard = hardSecretIn(words);
  const isSeed = !isHard && SEED.test(words);
  const isSoft = !isHard && !isSeed && softSecretIn(words);
  if (!isHard && !isSeed && !isSoft) return undefined;
  const near = around(text, index, isHard ? 1 : 0, isHard ? 3 : 2).filter(
    ({ fenced, frontmatter }) => !fenced && frontmatter === line.frontmatter,
  );
  const all = near.map(({ text: other }) => other).join(" ");
  if (!READ_WORD.test(all) || !SEND_WORD.test(all) || OWN_USE.test(words)) return undefined;
  const addresses = near.flatMap(({ text: other }) => addressesIn(other)).filter((address) => isOutside(address));
  const bad = addresses.some((address) => isBad(address, subject));
  if (isSoft) {
    const shady = addresses.some((address) => address.kind !== "unknown" && isBad(address, subject));
    if (!shady || !/\b(?:all|any|every|contents?|values?|user'?s|full)\b/.test(words)) return undefined;
  } else if (isSeed) {
    if (!bad && !MAILBOX.test(all)) return undefined;
    if (!/\b(?:ask|request|prompt|require|collect|obtain|get|enter|provide|paste)\b/.test(words)) return undefined;
  } else if (addresses.length > 0) {
    if (!bad) return undefined;
  } else if (!MAILBOX.test(all) && !CARRIER.test(all)) {
    return undefined;
  }
  return theft(
    line,
    isSeed
      ? "The agent is told to ask for the words that open a wallet and to pass them on."
      : "The agent is told to read secrets and to pass them on.",
    addresses,
  );
}

function isBad(address: Address, subject: Subject): boolean {
  if (
    isShady(address) ||
    address.kind === "paste" ||
    /\/api\/webhooks\/|\/bot\d{3,}:|hooks\.slack\.com/.test(address.url)
  )
    return true;
  return (
    isOutside(address) &&
    (address.plainHttp || ((address.kind === "unknown" || address.kind === "free page") && !subject.isOwn(address)))
  );
}

function theft(line: ScannedLine, message: string, addresses: readonly Address[]): Sign {
  return {
    code: "credential_theft",
    severity: "refuse",
    message,
    line,
    concrete: addresses.some(({ kind }) => kind === "number" || kind === "unknown" || kind === "drop"),
  };
}
