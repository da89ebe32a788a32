/** What a system does to protect its user is switched off. */
import { addressesIn } from "../addresses.ts";
import { FETCH_WORD } from "../framing.ts";
import { around, type ScannedText } from "../scanned-text.ts";
import type { Sign } from "../sign.ts";
import { LINES_PER_TURN, type Rule } from "./rule.ts";

const QUARANTINE = /\bxattr\b.{0,40}\s-(?:d|r?c|dr|rd|cr)\b/;
const COMMANDS: readonly RegExp[] = [
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
const WORDS =
  /\b(?:disable|turn off|switch off|deactivate|pause|exclude|whitelist|add an exception)\b[^.\n]{0,50}\b(?:anti-?virus|windows defender|defender|smartscreen|gatekeeper|real-?time protection|security software|firewall)\b|\b(?:anti-?virus|defender|smartscreen|gatekeeper|windows|macos)\b[^.\n]{0,60}\b(?:false positive|click (?:on )?["'`*]{0,3}(?:run|open) anyway|ignore (?:the|this|that|it|any))|["'`*]run anyway|more info["'`*]{0,3}\s{0,3}(?:>|->|\u2192|then|and)[^.\n]{0,20}run anyway/;
const REACH = 8;

export const weakenedSecurity: Rule = {
  hint: /xattr|spctl|csrutil|setenforce|mppreference|advfirewall|windefend|wscsvc|mpssvc|auditd|apparmor|falcon|clamav|osqueryd|firewall|ufw|iptables|anti-?virus|defender|smartscreen|gatekeeper|real-?time protection|security software|run anyway|false positive/,
  find,
};

function* find(text: ScannedText): Generator<Sign | undefined> {
  if (text.kind === "data") return;
  for (const [index, line] of text.lines.entries()) {
    if (index % LINES_PER_TURN === 0) yield undefined;
    const command = COMMANDS.some((pattern) => pattern.test(line.plain));
    const quarantine = !command && QUARANTINE.test(line.plain);
    const words = !command && !quarantine && text.kind === "instructions" && WORDS.test(line.text);
    if (!command && !quarantine && !words) continue;
    const near = around(text, index, REACH, REACH);
    const from = near.flatMap(({ plain }) => (FETCH_WORD.test(plain) ? addressesIn(plain) : []));
    const fetched = from.some(
      ({ kind }) => kind !== "local" && kind !== "installer" && kind !== "forge" && kind !== "example",
    );
    const forged = from.some(({ kind }) => kind === "forge");
    yield {
      code: "weakened_security",
      severity: fetched || (forged && words) ? "refuse" : quarantine ? "note" : "warn",
      message:
        fetched || forged
          ? "A protection of the system is switched off for something that is downloaded."
          : "A protection of the system is switched off.",
      line,
      concrete: fetched,
    };
  }
}
