/** Addresses that a package is installed from. An address that a program is only given, like a page to test, is none. */
import { type Address, addressesIn } from "./addresses.ts";
import type { TextKind } from "./places.ts";
import type { ScannedLine } from "./scanned-text.ts";

const MOST = 64;
const BEFORE = 240;
const LONGEST_ADDRESS = 500;

const STARTS = /(?:https?|ftp):\/\//g;
const MANAGER = /\b(?:pip3?|pipx|npm|npx|pnpm|pnpx|yarn|bunx?|uvx?|gem|cargo|go|git)\s/;

/** `-y`, `--quiet`, `--depth 1`, `--name=x`: between the verb and the address. */
const OPTIONS = String.raw`(?:\s{1,4}-{1,2}[\w-]{1,30}(?:=[^\s"'\`]{1,60}|\s{1,3}\d{1,6})?){0,8}`;
/** `git+http://…`, `name@http://…`, `"name @ http://…"`. */
const LEAD = String.raw`["']{0,2}(?:[\w.@/[\]-]{1,80}\s?@\s?)?(?:git\+)?$`;
const VERB = String.raw`\b(?:(?:pip3?|pipx|npm|pnpm|yarn|bun|gem|cargo|go|uv(?:\s{1,3}(?:pip|tool))?)(?:\s{1,3}-{1,2}[\w-]{1,30}){0,3}\s{1,3}(?:global\s{1,3}|-g\s{1,3})?(?:install|add|i|get|dlx|exec|x)|npx|pnpx|bunx|uvx|uv\s{1,3}run|uv\s{1,3}tool\s{1,3}run|pipx\s{1,3}run|git\s{1,3}clone)`;

/** The address comes next. */
const NEXT = new RegExp(String.raw`${VERB}${OPTIONS}\s{1,4}${LEAD}`);
/** Other packages come first, which only a command can have: in a sentence they are words. */
const INSTALL = String.raw`\b(?:pip3?|pipx|npm|pnpm|yarn|bun|gem|cargo|go|uv(?:\s{1,3}(?:pip|tool))?)\s{1,3}(?:install|add|i)`;
const AFTER_OTHERS = new RegExp(
  String.raw`${INSTALL}(?:\s{1,4}["']?[\w@.,/[\]=<>~^:-]{1,80}["']?){1,12}\s{1,4}${LEAD}`,
);
/** The address is the value of an option that says where packages come from. */
const BY_OPTION =
  /\b(?:(?:pip3?|pipx|uvx?)\s[^|;&`]{0,200}\s(?:-i|-f|--(?:default-|extra-)?index(?:-url)?|--find-links|--from|--with|--spec)|(?:npm|npx|pnpm|pnpx|yarn|bunx?)\s(?:(?!\s--\s)[^|;&`]){0,200}\s?(?:--registry|--package|-p)|gem\s[^|;&`]{0,200}\s(?:--source|-s)|cargo\s[^|;&`]{0,200}\s(?:--git|--index))(?:=|\s{1,3})["']?(?:[\w.@/[\]-]{1,80}\s?@\s?)?(?:git\+)?$/;

export function packagesIn({ plain, fenced }: ScannedLine, kind: TextKind): Address[] {
  const found: Address[] = [];
  if (!plain.includes("://") || !MANAGER.test(plain)) return found;
  let tries = 0;
  for (const { index } of plain.matchAll(STARTS)) {
    tries += 1;
    if (tries > MOST) break;
    const before = plain.slice(Math.max(0, index - BEFORE), index);
    const isCommand = fenced || kind === "script" || before.includes("`");
    if (!NEXT.test(before) && !BY_OPTION.test(before) && !(isCommand && AFTER_OTHERS.test(before))) continue;
    const address = addressesIn(plain.slice(index, index + LONGEST_ADDRESS))[0];
    if (address !== undefined) found.push(address);
  }
  return found;
}
