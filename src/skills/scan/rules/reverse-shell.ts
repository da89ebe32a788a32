/** A shell of this machine is handed to another one. */
import { around, type ScannedLine, type ScannedText } from "../scanned-text.ts";
import type { Sign } from "../sign.ts";
import { LINES_PER_TURN, type Rule } from "./rule.ts";

const HINT =
  /\/dev\/(?:tcp|udp)\/|\bn?cat\b|\bnc\b|netcat|socat|socket|telnet|\bssh\b|mkfifo|\/inet\/tcp|net\.connect|fsockopen|tcpclient|pty|net\.dial|tcpsocket|tcpstream|new socket/;

const COMMANDS: readonly RegExp[] = [
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

/** Spread over the lines of a program: a connection out, its ends made those of a shell. */
const CONNECTS =
  /\bsocket\.socket\(|\.connect\(\s{0,2}\(|net\.(?:connect|createconnection|socket)\b|tcpsocket\.(?:new|open)|net\.dial\(|tcpstream::connect|new net\.socket|tcpclient\(|new socket\(\s{0,2}["'\w]/;
const HANDS_OVER =
  /\bos\.dup2\(|\bpty\.spawn\(|\bspawn\(\s{0,2}["'](?:\/bin\/)?(?:ba|z)?sh|["']\/bin\/(?:ba|z)?sh["']\s{0,3},\s{0,3}(?:\[\s{0,3})?["']-i["']|(?:exec\.command|command::new)\(["'](?:\/bin\/)?(?:ba)?sh["']|getruntime\(\)\.exec\(|processbuilder\(["'](?:\/bin\/)?(?:ba)?sh|proc_open\(|cmd\.exe["']/;
const REACH = 25;

export const reverseShell: Rule = { hint: HINT, find };

function* find(text: ScannedText): Generator<Sign | undefined> {
  let last = Number.NEGATIVE_INFINITY;
  for (const [index, line] of text.lines.entries()) {
    if (index % LINES_PER_TURN === 0) yield undefined;
    if (!HINT.test(line.plain)) continue;
    if (COMMANDS.some((pattern) => pattern.test(line.plain)) && !isProbe(line)) {
      yield sign(line);
    } else if (
      index - last > REACH &&
      CONNECTS.test(line.plain) &&
      around(text, index, REACH, REACH).some(({ plain }) => HANDS_OVER.test(plain))
    ) {
      last = index;
      yield sign(line);
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

function sign(line: ScannedLine): Sign {
  const address = /\d{1,3}(?:\.\d{1,3}){3}/.exec(line.plain)?.[0] ?? "";
  return {
    code: "reverse_shell",
    severity: "refuse",
    message: "A shell of this machine is handed to another machine.",
    line,
    concrete: address !== "" && !/^(?:10|127|192\.168|172\.(?:1[6-9]|2\d|3[01])|0)\./.test(address),
  };
}
