/** "Before you can use this skill, download and run …": how most malicious skills have worked. */
import { type Address, addressesIn, isImpersonating, isSuspicious } from "../addresses.ts";
import { lineRule, type Rule, type Sign } from "../rule.ts";
import { LINES_PER_SLICE, linesAround, type ScannedText } from "../scanned-text.ts";
import { FETCH_WORD, isDemand, isDemanded, RUN_WORD, wordsAround } from "../source-risk.ts";
import type { Subject } from "../subject.ts";

const TERMINAL =
  /\b(?:copy|paste|pasting|copying|enter|run|execute)\b[^.\n]{0,100}\b(?:terminal|powershell|command (?:prompt|line)|console|cmd|win ?\+ ?r|run dialog)\b/;
const THEIRS = /\b(?:script|command|code|snippet|installation|instructions?|line)\b/;
const PROGRAM = /\.(?:zip|rar|7z|exe|msi|dmg|pkg|scr|bat|cmd|ps1|sh|apk|appimage|run|jar|iso|vbs|hta)(?:$|[?#])/;
const RUN_PROGRAM =
  /\b(?:as|to|into) \w{1,40}\.(?:ps1|sh|bat|cmd|py|command)\b[^.\n]{0,40}\brun\b|\b(?:run|execute|launch|start|double-?click|open)\b[^.\n]{0,60}\b(?:it|executable|exe|installer|file|program|binary|setup|utility|app|tool|agent|script|\w{1,40}\.(?:exe|dmg|pkg|msi|sh|bat|cmd))\b/;
const INSTALLER = /\.(?:exe|msi|dmg|pkg|scr|appimage|hta|vbs)(?:$|[?#])/;
const SYSTEMS = /\b(?:windows|mac ?os|macos|osx|linux)\b/;

const FETCHED =
  /\b(?:download\w{0,4}|visit|go to|navigate to|get (?:it|the \w{1,30}|\S{1,40}) (?:from|here|at)|available (?:at|from|here)|grab|install\w{0,4}(?: it)?(?: \([^)\n]{0,40}\))? from|obtain|fetch)\b/;
const INSTALLED =
  /\b(?:download|install|get)\w{0,4}\b[^\n]{0,60}\b(?:from|at|via|here|first)\b|\brequired?s?\b[^\n]{0,60}\binstall/;
const SET_UP = /\b(?:set-?up|install\w{0,6}|download\w{0,4}|get started|requires?|required)\b/;
export const fakePrerequisite: Rule = { hint: /:\/\//, find: findFakePrerequisites };

function* findFakePrerequisites(text: ScannedText, subject: Subject): Generator<Sign | undefined> {
  if (text.kind !== "instructions") return;
  let last = Number.NEGATIVE_INFINITY;
  for (const [index, line] of text.lines.entries()) {
    if (index % LINES_PER_SLICE === 0) yield undefined;
    if (line.fenced || !line.text.includes("://")) continue;
    const address = addressesIn(line.text).find((one) => isDownloadSource(one));
    if (address === undefined) continue;
    const words = wordsAround(text, index);
    if (!FETCH_WORD.test(words) && !RUN_WORD.test(words) && !isImpersonating(address.host)) continue;
    const severity = prerequisiteSeverity(address, line.text, textAround(text, index), words, {
      demanded: isDemanded(text, index),
      own: subject.isOwn(address),
    });
    if (severity === undefined || index - last < 4) continue;
    last = index;
    yield {
      code: "fake_prerequisite",
      severity,
      message: `The skill asks for something from ${address.host} to be downloaded and run before it can be used.`,
      line,
      near: address.url,
      concrete: true,
    };
  }
}

/** The line itself and those next to it. */
function textAround(text: ScannedText, index: number): string {
  return linesAround(text, index, 2, 1)
    .map(({ text: words }) => words)
    .join("\n");
}

function isDownloadSource({ kind }: Address): boolean {
  return kind !== "local" && kind !== "private" && kind !== "installer" && kind !== "example";
}

function prerequisiteSeverity(
  address: Address,
  line: string,
  beside: string,
  words: string,
  { demanded, own }: { demanded: boolean; own: boolean },
): "refuse" | "warn" | undefined {
  if (isImpersonating(address.host) && address.kind !== "forge" && !own) {
    const rest = line.replace(address.url, " ").trim();
    // A link with nothing around it leaves it to the agent what to do there.
    if (rest === "" || SET_UP.test(rest)) return "refuse";
  }
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
      // Anyone can choose a name like the skill's there.
      if (!FETCHED.test(words)) return undefined;
      return isPage || (isDemand(words) && INSTALLED.test(beside) && (!own || INSTALLED.test(line)))
        ? "refuse"
        : undefined;
    case "forge":
      // A release of an unrelated project, to be run by hand.
      if (!FETCHED.test(words) || !demanded || own || !PROGRAM.test(address.path) || !RUN_PROGRAM.test(words))
        return undefined;
      return SYSTEMS.test(words) ? "refuse" : "warn";
    default:
      if (own || !FETCHED.test(words)) return undefined;
      // An installer to be started by hand, required or not.
      if (INSTALLER.test(address.path) && isDemand(beside)) return isNamed(address, words) ? "warn" : "refuse";
      if (!demanded) return PROGRAM.test(address.path) && RUN_PROGRAM.test(beside) ? "warn" : undefined;
      if (!isPage && !isProgram) return undefined;
      return isNamed(address, words) ? "warn" : "refuse";
  }
}

/** Whether the text names a product like the site. */
function isNamed({ host, url }: Address, words: string): boolean {
  const label = host.split(".").at(-2) ?? "";
  return label.length >= 3 && words.replaceAll(url, " ").includes(label);
}

// Archives with a password: no scanner can look inside, which is what the password is for.

const UNLOCK_COMMAND =
  /\bunzip\b.{0,60}\s-p\s{0,2}["']?\S{2,}|\b7z[ar]?\b\s{1,3}(?:x|e)\b.{0,80}\s-p["']?[^\s"'-]{2,}|\bunrar\b\s{1,3}(?:x|e)\b.{0,60}\s-p["']?[^\s"'-]{2,}|\bbsdtar\b.{0,60}--passphrase|\bextractall\(.{0,60}pwd\s{0,2}=|\bexpand-7zip\b.{0,80}-password/;
const ARCHIVE =
  /\.(?:zip|rar|7z|dmg|iso|tar|tgz|gz|xz)\b|\barchives?\b|\b(?:zip|rar|7z)(?: file| archive|ped)\b|\bunzip\b|\bextract(?:ing|ed)?\b/;
const PASSWORD =
  /\b(?:unlock|extraction|archive|decryption|zip)(?:ing)? (?:code|key|pin|pass\w{0,6})\b(?: is)?\s{0,3}[:=]?\s{0,3}["'`*]{0,3}[\w!@#.-]{2,40}|\b(?:extract\w{0,4}|unzip|unpack|decompress|open|unlock|archives?|zip|rar|7z)\b[^.\n]{0,60}\b(?:pass(?:word|phrase|code)?|pwd|key)\b\s{0,3}(?:is|of|=|:)?\s{0,3}["'`*]{0,3}[\w!@#.-]{2,40}|\b(?:pass(?:word|phrase|code)?|pwd)\b(?: for (?:the )?(?:archive|zip|file|extraction))?\s{0,3}(?:is\b|[:=])\s{0,3}["'`*]{0,3}[\w!@#.-]{2,40}|\(\s{0,2}pass(?:word)?\s{0,2}[:=]?\s{0,3}["'`*]{0,3}[\w!@#.-]{2,40}/;
const PASSWORD_PLACEHOLDER = /\$\w|<\w|\byour[-_ ]|\{\w|%\w{1,20}%/;

export const lockedArchive = lineRule(
  /pass|pwd|unzip|7z|unrar|unlock|(?:archive|extraction|decryption) (?:code|key|pin)/,
  (line, { text, index }) => {
    const command = UNLOCK_COMMAND.exec(line.plain);
    if (command === null && !(/pass|pwd|unlock|code|\bpin\b/.test(line.text) && PASSWORD.test(line.text)))
      return undefined;
    const near = linesAround(text, index, 4, 4);
    const words = near.map(({ plain }) => plain).join("\n");
    if (command === null && !ARCHIVE.test(line.text) && !/\.(?:zip|rar|7z|dmg|iso)\b/.test(words)) return undefined;
    const isFetched = near.some(({ plain }) => {
      const named = FETCH_WORD.test(plain) || /\]\(/.test(plain);
      return addressesIn(plain).some(({ kind, path }) => kind !== "local" && (named || ARCHIVE.test(path)));
    });
    const isGap = PASSWORD_PLACEHOLDER.test(command?.[0].slice(-40) ?? PASSWORD.exec(line.text)?.[0].slice(-40) ?? "");
    if (command === null && !(isFetched && ARCHIVE.test(words))) return undefined;
    return {
      code: "locked_archive",
      severity: isFetched && !isGap ? "refuse" : "note",
      message: isFetched
        ? "An archive is downloaded and opened with a published password, which only keeps scanners out."
        : "An archive is opened with a password.",
      line,
      concrete: isFetched,
    };
  },
);

// Protections of the system that are switched off.

const QUARANTINE = /\bxattr\b.{0,40}\s-(?:d|r?c|dr|rd|cr)\b/;
const DISABLE_COMMANDS: readonly RegExp[] = [
  /\bspctl\b.{0,20}(?:--master-disable|--global-disable)/,
  /\bcsrutil\s{1,3}disable\b/,
  /\bsetenforce\s{1,3}(?:0|permissive)\b/,
  /\bset-mppreference\b.{0,80}-disable\w{4,40}\s{1,3}(?:\$true|1)/,
  /\badd-mppreference\b.{0,40}-exclusion/,
  /\bnetsh\s{1,3}advfirewall\b.{0,60}\bstate\s{1,3}off/,
  /\b(?:sc|net)\s{1,3}stop\s{1,3}(?:windefend|wscsvc|mpssvc)/,
  /\bsystemctl\s{1,3}(?:stop|disable|mask)\b.{0,30}\b(?:auditd|apparmor|falcon-sensor|clamav\w{0,20}|osqueryd|firewalld)\b/,
  /\bufw\s{1,3}disable\b|\biptables\s{1,3}-f\b(?=\s{0,3}$|\s{0,3}&)/,
];
const DISABLE_WORDS =
  /\b(?:disable|turn off|switch off|deactivate|pause|exclude|whitelist|add an exception)\b[^.\n]{0,50}\b(?:anti-?virus|windows defender|defender|smartscreen|gatekeeper|real-?time protection|security software|firewall)\b|\b(?:anti-?virus|defender|smartscreen|gatekeeper|windows|macos)\b[^.\n]{0,60}\b(?:false positive|click (?:on )?["'`*]{0,3}(?:run|open) anyway|ignore (?:the|this|that|it|any))|["'`*]run anyway|more info["'`*]{0,3}\s{0,3}(?:>|->|\u2192|then|and)[^.\n]{0,20}run anyway/;
const LINES_AROUND_DISABLE = 8;

export const weakenedSecurity = lineRule(
  /xattr|spctl|csrutil|setenforce|mppreference|advfirewall|windefend|wscsvc|mpssvc|auditd|apparmor|falcon|clamav|osqueryd|firewall|ufw|iptables|anti-?virus|defender|smartscreen|gatekeeper|real-?time protection|security software|run anyway|false positive/,
  (line, { text, index }) => {
    if (text.kind === "data") return undefined;
    const command = DISABLE_COMMANDS.some((pattern) => pattern.test(line.plain));
    const quarantine = !command && QUARANTINE.test(line.plain);
    const words = !command && !quarantine && text.kind === "instructions" && DISABLE_WORDS.test(line.text);
    if (!command && !quarantine && !words) return undefined;
    const near = linesAround(text, index, LINES_AROUND_DISABLE, LINES_AROUND_DISABLE);
    const from = near.flatMap(({ plain }) => (FETCH_WORD.test(plain) ? addressesIn(plain) : []));
    const fetched = from.some(
      ({ kind }) => kind !== "local" && kind !== "installer" && kind !== "forge" && kind !== "example",
    );
    const forged = from.some(({ kind }) => kind === "forge");
    return {
      code: "weakened_security",
      severity: fetched || (forged && words) ? "refuse" : quarantine ? "note" : "warn",
      message:
        fetched || forged
          ? "A protection of the system is switched off for a download."
          : "A protection of the system is switched off.",
      line,
      concrete: fetched,
    };
  },
);

// Instructions fetched from a server each time: its owner decides what the agent does next.

const FOLLOWED =
  /\b(?:fetch|curl|read|load|download|open|visit|get|retrieve|pull)\b[^.\n]{0,80}:\/\/\S{1,200}.{0,80}\b(?:and|then|,)\s{1,3}(?:always |then |immediately |silently |exactly )?(follow|execute|run|obey|do|perform|carry out|act on)\b(?! (?:the|its|their|these|those) (?:setup|install\w{0,6}|guide|link|steps|docs|documentation))/;
const BLINDLY =
  /\bwithout (?:asking|confirm\w{0,6}|question\w{0,4}|telling|review\w{0,4}|show\w{0,4}|mention\w{0,4})|\bsilently\b|\bwhatever it (?:says|contains|returns)\b|\b(?:all|any|every|the) (?:\w{1,12} )?(?:commands?|code|shell)\b|\bexactly as\b|\bno matter what\b/;

export const remoteInstructions = lineRule(/:\/\//, (line, { text, index, subject }) => {
  if (text.kind !== "instructions") return undefined;
  if (line.fenced || !line.text.includes("://")) return undefined;
  const followed = FOLLOWED.exec(line.text);
  const address =
    followed === null ? undefined : addressesIn(line.text).find(({ kind }) => kind !== "local" && kind !== "private");
  if (followed === null || address === undefined) return undefined;
  const words = linesAround(text, index, 0, 1)
    .map((near) => near.text)
    .join(" ")
    .slice(followed.index, followed.index + 600);
  const own = subject.isOwn(address);
  const blind = BLINDLY.test(words.replace(address.url, " "));
  return {
    code: "remote_instructions",
    severity: isSuspicious(address) || address.kind === "paste" || (blind && !own) ? "refuse" : own ? "note" : "warn",
    message: `The agent is instructed to do what ${address.host} says, which can change at any time.`,
    line,
    concrete: true,
  };
});
