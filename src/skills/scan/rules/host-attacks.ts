/** Attacks on the machine: persistence, reverse shells, sabotage. */
import { addressesIn, isOutside } from "../addresses.ts";
import { lineRule, type Rule, type Sign } from "../rule.ts";
import { LINES_PER_SLICE, linesAround, type ScannedLine, type ScannedText } from "../scanned-text.ts";
import { decodes, fetches } from "../shell-commands.ts";

const PERSISTENCE_HINT =
  /cron|launch|authorized_keys|\.(?:bash|zsh|profile)|profile|systemd|systemctl|schtasks|currentversion|startup|rc\.local|register-scheduledtask|\.git\/hooks|login ?items?/;

const KEY_ADDED =
  />>?\s{0,3}["']?[^\s"';|]{0,60}authorized_keys|\btee\b\s{1,3}(?:-a\s{1,3})?[^\s;|]{0,60}authorized_keys|authorized_keys["']\)?,?\s{0,3}(?:["'](?:a|w)|.{0,40}appendfile)|appendfile\w{0,4}\(.{0,80}authorized_keys|\b(?:add|append|write|put|copy)\b.{0,80}\b(?:to|into|in)\b.{0,30}authorized_keys/;
/** A literal key is the author's, not the user's. */
const KEY_TEXT = /\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\w{1,12})\s{1,3}aaaa[a-z0-9+/]{16,}/;

const JOB =
  /\bcrontab\s{1,3}-(?!l\b|e\b|r\b)|\|\s{0,3}crontab\b|\/etc\/cron[\w.]{0,8}\/|\/var\/spool\/cron|launchagents\/|launchdaemons\/|\bschtasks\b.{0,20}\/create|register-scheduledtask|currentversion\\{1,2}run|\\startup\\|\bnew-service\b|\/etc\/rc\.local|\.config\/autostart\/|\bsystemd\/(?:user|system)\/\S{1,60}\.(?:service|timer)|\bmake login item/;
const PROFILE =
  />>\s{0,3}["']?(?:~|\$home|\$\{home\}|\/root|\/home\/\w{1,30})?\/?\.?\/?\.(?:bashrc|bash_profile|zshrc|zprofile|zshenv|profile|bash_login)\b|>>\s{0,3}["']?\$profile\b|add-content\s.{0,40}\$profile|["'][^"'\s]{0,40}\.(?:bashrc|zshrc|profile|bash_profile)["']\)?,\s{0,3}["']a/;
const SHADOWING = /\balias\s{1,3}(?:sudo|ssh|git|su|ls|cd|gpg|npm|pip)=["'].{0,80}(?:curl|wget|nc |tee|>>|http|base64)/;
/** Temporary, hidden or shared folders. */
const ODD_PROGRAM =
  /(?:\/dev\/shm|\/var\/tmp|\/tmp)\/\.?\w|\/\.cache\/\.\w|\/\.local\/share\/\.\w|%temp%\\|%appdata%\\|\$env:(?:temp|appdata)\b|\\appdata\\(?:roaming|local\\temp)/;
const LINES_AROUND_JOB = 8;

export const persistence = lineRule(PERSISTENCE_HINT, (line, { text, index }) =>
  PERSISTENCE_HINT.test(line.text) ? (keySign(text, index, line) ?? jobSign(text, index, line)) : undefined,
);

function keySign(text: ScannedText, index: number, line: ScannedLine): Sign | undefined {
  if (!KEY_ADDED.test(line.text) && !KEY_ADDED.test(line.plain)) return undefined;
  const spelled = linesAround(text, index, 3, 3).some((near) => KEY_TEXT.test(near.plain));
  return {
    code: "persistence",
    severity: spelled || fetches(line.plain) || decodes(line.plain) ? "refuse" : "warn",
    message: "A key that lets its owner log in to this machine is added.",
    line,
    concrete: spelled,
  };
}

function jobSign(text: ScannedText, index: number, line: ScannedLine): Sign | undefined {
  const isJob = JOB.test(line.text);
  const isProfile = PROFILE.test(line.text) || PROFILE.test(line.plain);
  if (SHADOWING.test(line.plain))
    return persistenceSign("refuse", "A common command is replaced by one that sends data elsewhere.", line);
  if (!isJob && !isProfile) return undefined;
  const remote = (near: ScannedLine): boolean =>
    (fetches(near.plain) || decodes(near.plain)) &&
    /\|\s{0,3}(?:sudo )?(?:ba|z|da)?sh\b|\beval\b|\biex\b|\$\(/.test(near.plain);
  const own = isProfile
    ? [line]
    : linesAround(text, index, line.fenced || text.kind === "script" ? LINES_AROUND_JOB : 0, LINES_AROUND_JOB).filter(
        ({ fenced }) => fenced === line.fenced,
      );
  const outside = (near: ScannedLine): boolean => addressesIn(near.plain).some(isOutside);
  if (remote(line) && (isJob || outside(line)))
    return persistenceSign(
      "refuse",
      "A job or shell profile that repeatedly runs whatever a server sends is set up.",
      line,
    );
  if (isJob && own.some((near) => remote(near) && outside(near) && near.fenced === line.fenced))
    return persistenceSign("refuse", "A job that repeatedly runs whatever a server sends is set up.", line);
  const jobLines = text.kind === "script" ? own : [line];
  if (isJob && jobLines.some(({ plain, text: words }) => ODD_PROGRAM.test(plain) || ODD_PROGRAM.test(words)))
    return persistenceSign("warn", "A job that runs a program from a temporary or hidden folder is set up.", line);
  return isJob && text.kind === "script"
    ? persistenceSign("note", "A job that keeps running is set up.", line)
    : undefined;
}

function persistenceSign(severity: Sign["severity"], message: string, line: ScannedLine): Sign {
  return { code: "persistence", severity, message, line, concrete: severity === "refuse" };
}

// Reverse shells.

const SHELL_HINT =
  /\/dev\/(?:tcp|udp)\/|\bn?cat\b|\bnc\b|netcat|socat|socket|telnet|\bssh\b|mkfifo|\/inet\/tcp|net\.connect|fsockopen|tcpclient|pty|net\.dial|tcpsocket|tcpstream|new socket/;

const SHELL_COMMANDS: readonly RegExp[] = [
  /(?:bash|sh|zsh|exec|cat|\d<>|>&?|<)\s{0,4}.{0,60}\/dev\/(?:tcp|udp)\/[\w.$<{-]/,
  /\b(?:nc|ncat|netcat)(?:\.exe|\.traditional|\.openbsd)?\b.{0,80}\s(?:-[a-z]{0,6}[ec]|--exec|--sh-exec)\s{1,3}["']?(?:\/\w{1,10}\/|\/usr\/bin\/)?(?:ba|z|da|k)?(?:sh|cmd|powershell)\b/,
  /\b(?:nc|ncat|netcat)\b.{0,60}\|\s{0,3}(?:\/\w{1,10}\/)?(?:ba|z)?sh\b.{0,40}\|\s{0,3}(?:nc|ncat|netcat)\b/,
  /\bmkfifo\b.{0,200}(?:\bsh\b|\bbash\b).{0,120}\b(?:nc|ncat|netcat|telnet|openssl)\b/,
  /\bsocat\b.{0,120}\b(?:exec|system):["']?[^\s]{0,40}(?:sh|cmd)\b/,
  /\btelnet\b.{0,60}\|\s{0,3}(?:\/\w{1,10}\/)?(?:ba)?sh\b.{0,40}\|\s{0,3}telnet\b/,
  /\/inet\/tcp\/0\/.{0,200}(?:getline|\|&)/,
  /\bfsockopen\(.{0,120}(?:exec|shell_exec|proc_open|system|passthru)\(/,
  /\bnet\.sockets\.tcpclient\b.{0,400}(?:\biex\b|invoke-expression|\bcmd\b|getstream)/,
  /\brequire\(["']net["']\).{0,200}(?:\/bin\/(?:ba)?sh|cmd\.exe)/,
  /\b(?:auto)?ssh\b.{0,60}\s-\w{0,4}r\s{0,2}(?:\S{1,20}:)?\d{2,5}:(?:localhost|127\.0\.0\.1):22\b/,
  /\bsocket\b.{0,300}(?:\/bin\/(?:ba|z)?sh|pty\.spawn|cmd\.exe)/,
];

/** Over several lines of a program: a connection whose ends become those of a shell. */
const CONNECTS =
  /\bsocket\.socket\(|\.connect\(\s{0,2}\(|net\.(?:connect|createconnection|socket)\b|tcpsocket\.(?:new|open)|net\.dial\(|tcpstream::connect|new net\.socket|tcpclient\(|new socket\(\s{0,2}["'\w]/;
const HANDS_OVER =
  /\bos\.dup2\(|\bpty\.spawn\(|\bspawn\(\s{0,2}["'](?:\/bin\/)?(?:ba|z)?sh|["']\/bin\/(?:ba|z)?sh["']\s{0,3},\s{0,3}(?:\[\s{0,3})?["']-i["']|(?:exec\.command|command::new)\(["'](?:\/bin\/)?(?:ba)?sh["']|getruntime\(\)\.exec\(|processbuilder\(["'](?:\/bin\/)?(?:ba)?sh|proc_open\(|cmd\.exe["']/;
const LINES_AROUND_SOCKET = 25;

export const reverseShell: Rule = { hint: SHELL_HINT, find: findReverseShells };

function* findReverseShells(text: ScannedText): Generator<Sign | undefined> {
  let last = Number.NEGATIVE_INFINITY;
  for (const [index, line] of text.lines.entries()) {
    if (index % LINES_PER_SLICE === 0) yield undefined;
    if (!SHELL_HINT.test(line.plain)) continue;
    if (SHELL_COMMANDS.some((pattern) => pattern.test(line.plain)) && !isProbe(line)) {
      yield reverseShellSign(line);
    } else if (
      index - last > LINES_AROUND_SOCKET &&
      CONNECTS.test(line.plain) &&
      linesAround(text, index, LINES_AROUND_SOCKET, LINES_AROUND_SOCKET).some(({ plain }) => HANDS_OVER.test(plain))
    ) {
      last = index;
      yield reverseShellSign(line);
    }
  }
}

/** `timeout 1 bash -c "</dev/tcp/host/80"` only asks whether a port is open. */
function isProbe({ plain }: ScannedLine): boolean {
  return (
    plain.includes("/dev/tcp/") &&
    !/\s-i\b|>&\s{0,3}\/dev|0>&1|<&\d|exec\s{0,3}\d|\bsh\b\s{0,3}<|\bwhile read\b|\bcat\b.{0,40}>/.test(plain)
  );
}

function reverseShellSign(line: ScannedLine): Sign {
  const address = /\d{1,3}(?:\.\d{1,3}){3}/.exec(line.plain)?.[0] ?? "";
  return {
    code: "reverse_shell",
    severity: "refuse",
    message: "Another machine gets a shell on this one.",
    line,
    concrete: address !== "" && !/^(?:10|127|192\.168|172\.(?:1[6-9]|2\d|3[01])|0)\./.test(address),
  };
}

// Commands that wipe a machine, mine on it, or swap what its user copies.

const SABOTAGE_HINT =
  /clip|pbcopy|\brm\b|mkfs|\bdd\b|\(\)\s{0,2}\{|xmrig|stratum\+|monero|minexmr|supportxmr|nicehash|cryptonight|remove-item|format/;
/** The whole root or home folder. */
const WIPE =
  /\brm\s{1,3}(?:-{1,2}[\w-]{0,20}r[\w-]{0,20}\s{1,3})(?:-{1,2}[\w-]{1,30}\s{1,3}){0,3}["']?(?:\/|~|\$home|\$\{home\}|\/home|\/users|\/\*|~\/\*|\$home\/\*)["']?\/?(?=$|[\s"'`;&|)])|--no-preserve-root|\bremove-item\b.{0,40}-recurse.{0,40}(?:c:\\(?=$|[\s"'*])|\$home(?=$|[\s"'])|\$env:userprofile(?=$|[\s"']))|\bdd\b.{0,60}\bof=\/dev\/(?:sda|nvme0n1|disk0)\b|\bmkfs\.\w{2,6}\s.{0,40}\/dev\/(?:sda|nvme0n1)|:\(\)\s{0,2}\{\s{0,2}:\s{0,2}\|\s{0,2}:\s{0,2}&\s{0,2}\}/;
const MINER =
  /\bstratum\+(?:tcp|ssl|tls):\/\/|\bxmrig\b.{0,120}(?:\s-o\s|--url|--user|--pool|-u\s)|\b(?:minexmr|supportxmr|moneroocean|nanopool)\.\w{2,6}:\d/;

const PASTES =
  /\bpyperclip\.paste\(|\bpbpaste\b|\bxclip -o\b|\bclipboard\.(?:readtext|read|gettext)\w{0,4}\(|\bget-clipboard\b|\bclipboardy\.read/;
const COPIES =
  /\bpyperclip\.copy\(|\bpbcopy\b|\bxclip -selection\b|\bclipboard\.(?:writetext|write|settext)\w{0,4}\(|\bset-clipboard\b|\bclipboardy\.write/;
const WALLET = /\bbc1[\w(|)[]|\b0x[[({]?[a-f0-9][^\s"']{0,8}\{?40|\(?bc1\|/;
export const sabotage: Rule = { hint: SABOTAGE_HINT, find: findSabotage };

function* findSabotage(text: ScannedText): Generator<Sign | undefined> {
  // A copied wallet address is replaced by the attacker's.
  const copying = text.kind === "script" ? text.lines.find(({ plain }) => COPIES.test(plain)) : undefined;
  if (copying !== undefined && PASTES.test(text.all) && WALLET.test(text.all))
    yield {
      code: "credential_theft",
      severity: "refuse",
      message: "Wallet addresses in the clipboard are replaced.",
      line: copying,
      concrete: true,
    };
  for (const line of text.lines) {
    if (line.number % LINES_PER_SLICE === 0) yield undefined;
    if (MINER.test(line.plain))
      yield {
        code: "crypto_miner",
        severity: "refuse",
        message: "The machine is used to mine cryptocurrency for someone else.",
        line,
        concrete: true,
      };
    // Guides mention these commands; scripts run them.
    else if (WIPE.test(line.plain) && (text.kind === "script" || line.fenced))
      yield {
        code: "destructive_command",
        severity: text.kind === "script" ? "refuse" : "warn",
        message: "A command deletes the whole disk or home folder.",
        line,
      };
  }
}
