/** An archive with a password cannot be looked into by any scanner: that is what the password is for. */
import { addressesIn } from "../addresses.ts";
import { FETCH_WORD } from "../framing.ts";
import { around, type ScannedText } from "../scanned-text.ts";
import type { Sign } from "../sign.ts";
import { LINES_PER_TURN, type Rule } from "./rule.ts";

const COMMAND =
  /\bunzip\b.{0,60}\s-p\s{0,2}["']?\S{2,}|\b7z[ar]?\b\s{1,3}(?:x|e)\b.{0,80}\s-p["']?[^\s"'-]{2,}|\bunrar\b\s{1,3}(?:x|e)\b.{0,60}\s-p["']?[^\s"'-]{2,}|\bbsdtar\b.{0,60}--passphrase|\bextractall\(.{0,60}pwd\s{0,2}=|\bexpand-7zip\b.{0,80}-password/;
const ARCHIVE =
  /\.(?:zip|rar|7z|dmg|iso|tar|tgz|gz|xz)\b|\barchives?\b|\b(?:zip|rar|7z)(?: file| archive|ped)\b|\bunzip\b|\bextract(?:ing|ed)?\b/;
const PASSWORD =
  /\b(?:unlock|extraction|archive|decryption|zip)(?:ing)? (?:code|key|pin|pass\w{0,6})\b(?: is)?\s{0,3}[:=]?\s{0,3}["'`*]{0,3}[\w!@#.-]{2,40}|\b(?:extract\w{0,4}|unzip|unpack|decompress|open|unlock|archives?|zip|rar|7z)\b[^.\n]{0,60}\b(?:pass(?:word|phrase|code)?|pwd|key)\b\s{0,3}(?:is|of|=|:)?\s{0,3}["'`*]{0,3}[\w!@#.-]{2,40}|\b(?:pass(?:word|phrase|code)?|pwd)\b(?: for (?:the )?(?:archive|zip|file|extraction))?\s{0,3}(?:is\b|[:=])\s{0,3}["'`*]{0,3}[\w!@#.-]{2,40}|\(\s{0,2}pass(?:word)?\s{0,2}[:=]?\s{0,3}["'`*]{0,3}[\w!@#.-]{2,40}/;
const GAP = /\$\w|<\w|\byour[-_ ]|\{\w|%\w{1,20}%/;

export const lockedArchive: Rule = {
  hint: /pass|pwd|unzip|7z|unrar|unlock|(?:archive|extraction|decryption) (?:code|key|pin)/,
  find,
};

function* find(text: ScannedText): Generator<Sign | undefined> {
  for (const [index, line] of text.lines.entries()) {
    if (index % LINES_PER_TURN === 0) yield undefined;
    const command = COMMAND.exec(line.plain);
    if (command === null && !(/pass|pwd|unlock|code|\bpin\b/.test(line.text) && PASSWORD.test(line.text))) continue;
    const near = around(text, index, 4, 4);
    const words = near.map(({ plain }) => plain).join("\n");
    if (command === null && !ARCHIVE.test(line.text) && !/\.(?:zip|rar|7z|dmg|iso)\b/.test(words)) continue;
    const isFetched = near.some(({ plain }) => {
      const named = FETCH_WORD.test(plain) || /\]\(/.test(plain);
      return addressesIn(plain).some(({ kind, path }) => kind !== "local" && (named || ARCHIVE.test(path)));
    });
    const isGap = GAP.test(command?.[0].slice(-40) ?? PASSWORD.exec(line.text)?.[0].slice(-40) ?? "");
    if (command === null && !(isFetched && ARCHIVE.test(words))) continue;
    yield {
      code: "locked_archive",
      severity: isFetched && !isGap ? "refuse" : "note",
      message: isFetched
        ? "An archive is downloaded and opened with a password that is given along with it: a password keeps scanners out, not readers."
        : "An archive is opened with a password.",
      line,
      concrete: isFetched,
    };
  }
}
