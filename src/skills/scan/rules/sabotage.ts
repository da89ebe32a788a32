/** Commands that ruin a machine or put it to work for somebody else. */
import type { ScannedText } from "../scanned-text.ts";
import type { Sign } from "../sign.ts";
import { LINES_PER_TURN, type Rule } from "./rule.ts";

const HINT =
  /clip|pbcopy|\brm\b|mkfs|\bdd\b|\(\)\s{0,2}\{|xmrig|stratum\+|monero|minexmr|supportxmr|nicehash|cryptonight|remove-item|format/;
/** The root or the home of the user, whole. */
const WIPE =
  /\brm\s{1,3}(?:-{1,2}[\w-]{0,20}r[\w-]{0,20}\s{1,3})(?:-{1,2}[\w-]{1,30}\s{1,3}){0,3}["']?(?:\/|~|\$home|\$\{home\}|\/home|\/users|\/\*|~\/\*|\$home\/\*)["']?\/?(?=$|[\s"'`;&|)])|--no-preserve-root|\bremove-item\b.{0,40}-recurse.{0,40}(?:c:\\(?=$|[\s"'*])|\$home(?=$|[\s"'])|\$env:userprofile(?=$|[\s"']))|\bdd\b.{0,60}\bof=\/dev\/(?:sda|nvme0n1|disk0)\b|\bmkfs\.\w{2,6}\s.{0,40}\/dev\/(?:sda|nvme0n1)|:\(\)\s{0,2}\{\s{0,2}:\s{0,2}\|\s{0,2}:\s{0,2}&\s{0,2}\}/;
const MINER =
  /\bstratum\+(?:tcp|ssl|tls):\/\/|\bxmrig\b.{0,120}(?:\s-o\s|--url|--user|--pool|-u\s)|\b(?:minexmr|supportxmr|moneroocean|nanopool)\.\w{2,6}:\d/;

export const sabotage: Rule = { hint: HINT, find };

const PASTES =
  /\bpyperclip\.paste\(|\bpbpaste\b|\bxclip -o\b|\bclipboard\.(?:readtext|read|gettext)\w{0,4}\(|\bget-clipboard\b|\bclipboardy\.read/;
const COPIES =
  /\bpyperclip\.copy\(|\bpbcopy\b|\bxclip -selection\b|\bclipboard\.(?:writetext|write|settext)\w{0,4}\(|\bset-clipboard\b|\bclipboardy\.write/;
const WALLET = /\bbc1[\w(|)[]|\b0x[[({]?[a-f0-9][^\s"']{0,8}\{?40|\(?bc1\|/;

function* find(text: ScannedText): Generator<Sign | undefined> {
  // What was copied is replaced by another address, which nobody compares before paying.
  const copying = text.kind === "script" ? text.lines.find(({ plain }) => COPIES.test(plain)) : undefined;
  if (copying !== undefined && PASTES.test(text.all) && WALLET.test(text.all))
    yield {
      code: "credential_theft",
      severity: "refuse",
      message: "Addresses of wallets in the clipboard are replaced.",
      line: copying,
      concrete: true,
    };
  for (const line of text.lines) {
    if (line.number % LINES_PER_TURN === 0) yield undefined;
    if (MINER.test(line.plain))
      yield {
        code: "crypto_miner",
        severity: "refuse",
        message: "The machine is put to work for somebody else's money.",
        line,
        concrete: true,
      };
    // Guides about shells name these commands; what runs them is a script.
    else if (WIPE.test(line.plain) && (text.kind === "script" || line.fenced))
      yield {
        code: "destructive_command",
        severity: text.kind === "script" ? "refuse" : "warn",
        message: "A command deletes the whole disk or the whole home folder.",
        line,
      };
  }
}
