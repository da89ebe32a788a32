/** Text as terms: `createPullRequest`, `create_pull_requests` and "creating a pull request" have the same terms. */

const ASCII_ONLY = /^[\u0000-\u007f]*$/; // oxlint-disable-line no-control-regex -- the range is what is meant
const ASCII_WORD = /[A-Za-z0-9]+/g;
const ANY_WORD = /[\p{L}\p{N}]+/gu;
/** Scripts that are written without spaces; pairs of adjacent characters are used as words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;

/** Words that say nothing about a tool; most tools have them all. */
const STOP_WORDS = new Set(
  "a an and are as at be by can do does for from has have how i if in into is it its me my of on or our s so t that the their them then there these this to us use used uses using via want was we what when where which who will with would you your".split(
    " ",
  ),
);

/** A word of a text. `parts` are its terms; `whole` is the word in one piece where it has several (`GitHub`). */
interface Word {
  readonly parts: readonly string[];
  readonly whole: string | undefined;
}

const NO_TERMS: Word = { parts: [], whole: undefined };

/** The words of a text, folded to plain letters but with their case. */
export function rawWords(text: string): readonly string[] {
  if (ASCII_ONLY.test(text)) return text.match(ASCII_WORD) ?? [];
  const folded = text
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .normalize("NFC");
  return folded.match(ANY_WORD) ?? [];
}

export function readWord(raw: string): Word {
  const lower = raw.toLowerCase();
  if (STOP_WORDS.has(lower)) return NO_TERMS;
  if (UNSPACED.test(raw)) return { parts: pairs(lower), whole: undefined };
  if (raw === lower || raw === raw.toUpperCase()) return { parts: [stem(lower)], whole: undefined };
  const parts = raw
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2")
    .toLowerCase()
    .split(" ");
  if (parts.length === 1) return { parts: [stem(lower)], whole: undefined };
  return { parts: parts.filter((part) => !STOP_WORDS.has(part)).map(stem), whole: stem(lower) };
}

function pairs(word: string): string[] {
  const characters = Array.from(word);
  if (characters.length < 3) return [word];
  return characters.slice(1).map((character, i) => `${characters[i] ?? ""}${character}`);
}

/** English endings of plurals and verbs, by rules that rarely join words of different meaning. */
export function stem(word: string): string {
  if (word.length < 4) return word;
  const singular = withoutPlural(word);
  const base = withoutVerbEnding(singular);
  return base.length > 3 && base.endsWith("e") ? base.slice(0, -1) : base;
}

function withoutPlural(word: string): string {
  if (word.endsWith("ies") && word.length > 4) return `${word.slice(0, -3)}y`;
  if (/(?:ss|sh|ch|x|z)es$/.test(word)) return word.slice(0, -2);
  if (word.endsWith("s") && !/(?:ss|us|is)$/.test(word)) return word.slice(0, -1);
  return word;
}

function withoutVerbEnding(word: string): string {
  const ending = /(?:ing|ed)$/.exec(word);
  if (ending === null) return word;
  const base = word.slice(0, ending.index);
  if (base.length < 3 || !/[aeiouy]/.test(base)) return word;
  // `planned`, `getting`; but `calling`, `passing` and `buzzing` keep their double letter.
  return /([^aeioulsz])\1$/.test(base) ? base.slice(0, -1) : base;
}

/** Words that people and tools use for the same thing. A synonym counts less than the word itself. */
const SYNONYM_GROUPS = [
  "create add new make insert",
  "get read fetch retrieve show view",
  "list enumerate show",
  "search find query lookup locate",
  "update edit modify change patch",
  "delete remove erase drop destroy",
  "send post publish",
  "write save store",
  "run execute invoke start launch",
  "copy duplicate clone",
  "move rename relocate",
  "directory folder dir",
  "file document",
  "repository repo",
  "image picture photo screenshot",
  "email mail",
  "message msg chat",
  "database db sql",
  "calendar schedule event meeting appointment",
  "user person people member account",
  "task todo ticket issue",
  "web internet website online",
  "url link address",
  "config configuration settings",
  "environment env",
  "error exception failure bug",
  "sum add plus",
  "weather forecast",
  "pay payment charge",
  "knowledge memory",
] as const;

const SYNONYMS_BY_TERM = new Map<string, Set<string>>();
for (const group of SYNONYM_GROUPS) {
  const terms = group.split(" ").map(stem);
  for (const term of terms) {
    const others = SYNONYMS_BY_TERM.get(term) ?? new Set();
    for (const other of terms) if (other !== term) others.add(other);
    SYNONYMS_BY_TERM.set(term, others);
  }
}

const NO_SYNONYMS: ReadonlySet<string> = new Set();

export function synonymsOf(term: string): ReadonlySet<string> {
  return SYNONYMS_BY_TERM.get(term) ?? NO_SYNONYMS;
}
