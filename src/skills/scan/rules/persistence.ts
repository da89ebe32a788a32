/** Things that stay: jobs, login items, shell profiles, keys that let somebody in. */
import { addressesIn, isOutside } from "../addresses.ts";
import { decodes, fetches } from "../commands.ts";
import { around, type ScannedLine, type ScannedText } from "../scanned-text.ts";
import type { Sign } from "../sign.ts";
import { LINES_PER_TURN, type Rule } from "./rule.ts";

const HINT =
  /cron|launch|authorized_keys|\.(?:bash|zsh|profile)|profile|systemd|systemctl|schtasks|currentversion|startup|rc\.local|register-scheduledtask|\.git\/hooks|login ?items?/;

const KEY_ADDED =
  />>?\s{0,3}["']?[^\s"';|]{0,60}authorized_keys|\btee\b\s{1,3}(?:-a\s{1,3})?[^\s;|]{0,60}authorized_keys|authorized_keys["']\)?,?\s{0,3}(?:["'](?:a|w)|.{0,40}appendfile)|appendfile\w{0,4}\(.{0,80}authorized_keys|\b(?:add|append|write|put|copy)\b.{0,80}\b(?:to|into|in)\b.{0,30}authorized_keys/;
/** A key that is spelled out is the author's, not the user's. */
const KEY_TEXT = /\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\w{1,12})\s{1,3}aaaa[a-z0-9+/]{16,}/;

const JOB =
  /\bcrontab\s{1,3}-(?!l\b|e\b|r\b)|\|\s{0,3}crontab\b|\/etc\/cron[\w.]{0,8}\/|\/var\/spool\/cron|launchagents\/|launchdaemons\/|\bschtasks\b.{0,20}\/create|register-scheduledtask|currentversion\\{1,2}run|\\startup\\|\bnew-service\b|\/etc\/rc\.local|\.config\/autostart\/|\bsystemd\/(?:user|system)\/\S{1,60}\.(?:service|timer)|\bmake login item/;
const PROFILE =
  />>\s{0,3}["']?(?:~|\$home|\$\{home\}|\/root|\/home\/\w{1,30})?\/?\.?\/?\.(?:bashrc|bash_profile|zshrc|zprofile|zshenv|profile|bash_login)\b|>>\s{0,3}["']?\$profile\b|add-content\s.{0,40}\$profile|["'][^"'\s]{0,40}\.(?:bashrc|zshrc|profile|bash_profile)["']\)?,\s{0,3}["']a/;
const SHADOWING = /\balias\s{1,3}(?:sudo|ssh|git|su|ls|cd|gpg|npm|pip)=["'].{0,80}(?:curl|wget|nc |tee|>>|http|base64)/;
/** Places that are cleared, hidden or nobody's. */
const ODD_PROGRAM =
  /(?:\/dev\/shm|\/var\/tmp|\/tmp)\/\.?\w|\/\.cache\/\.\w|\/\.local\/share\/\.\w|%temp%\\|%appdata%\\|\$env:(?:temp|appdata)\b|\\appdata\\(?:roaming|local\\temp)/;
const REACH = 8;

export const persistence: Rule = { hint: HINT, find };

function* find(text: ScannedText): Generator<Sign | undefined> {
  for (const [index, line] of text.lines.entries()) {
    if (index % LINES_PER_TURN === 0) yield undefined;
    if (!HINT.test(line.text)) continue;
    const sign = keySign(text, index, line) ?? jobSign(text, index, line);
    if (sign !== undefined) yield sign;
  }
}

function keySign(text: ScannedText, index: number, line: ScannedLine): Sign | undefined {
  if (!KEY_ADDED.test(line.text) && !KEY_ADDED.test(line.plain)) return undefined;
  const spelled = around(text, index, 3, 3).some((near) => KEY_TEXT.test(near.plain));
  return {
    code: "persistence",
    severity: spelled || fetches(line.plain) || decodes(line.plain) ? "refuse" : "warn",
    message: "A key is added that lets its owner log in to this machine.",
    line,
    concrete: spelled,
  };
}

function jobSign(text: ScannedText, index: number, line: ScannedLine): Sign | undefined {
  const isJob = JOB.test(line.text);
  const isProfile = PROFILE.test(line.text) || PROFILE.test(line.plain);
  if (SHADOWING.test(line.plain))
    return sign("refuse", "An everyday command is replaced by one that reports elsewhere.", line);
  if (!isJob && !isProfile) return undefined;
  const remote = (near: ScannedLine): boolean =>
    (fetches(near.plain) || decodes(near.plain)) &&
    /\|\s{0,3}(?:sudo )?(?:ba|z|da)?sh\b|\beval\b|\biex\b|\$\(/.test(near.plain);
  const own = isProfile
    ? [line]
    : around(text, index, line.fenced || text.kind === "script" ? REACH : 0, REACH).filter(
        ({ fenced }) => fenced === line.fenced,
      );
  const outside = (near: ScannedLine): boolean => addressesIn(near.plain).some(isOutside);
  if (remote(line) && (isJob || outside(line)))
    return sign(
      "refuse",
      "A job or profile is set up that fetches and runs whatever a server sends, again and again.",
      line,
    );
  if (isJob && own.some((near) => remote(near) && outside(near) && near.fenced === line.fenced))
    return sign("refuse", "A job is set up that fetches and runs whatever a server sends, again and again.", line);
  const jobLines = text.kind === "script" ? own : [line];
  if (isJob && jobLines.some(({ plain, text: words }) => ODD_PROGRAM.test(plain) || ODD_PROGRAM.test(words)))
    return sign("warn", "A job is set up that runs a program from a temporary or hidden place.", line);
  return isJob && text.kind === "script" ? sign("note", "A job is set up that goes on running.", line) : undefined;
}

function sign(severity: Sign["severity"], message: string, line: ScannedLine): Sign {
  return { code: "persistence", severity, message, line, concrete: severity === "refuse" };
}
