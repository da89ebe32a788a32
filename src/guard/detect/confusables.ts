/** Letters that look like Latin ones. Small on purpose: the scripts that forgers use, not the whole Unicode table. */

const LOOKALIKES: Readonly<Record<string, string>> = {
  // Cyrillic
  a: "а",
  b: "ьв",
  c: "с",
  d: "ԁ",
  e: "еєҽ",
  h: "һн",
  i: "іɩ",
  j: "ј",
  k: "кқ",
  l: "ӏ",
  m: "м",
  n: "п",
  o: "оө",
  p: "р",
  q: "ԛ",
  r: "г",
  s: "ѕ",
  t: "т",
  u: "ц",
  v: "ѵ",
  w: "ԝѡ",
  x: "хҳ",
  y: "уү",
  // The digit 3 look of Cyrillic ze is left alone: it starts too many Russian words to mean anything.
};

const GREEK: Readonly<Record<string, string>> = {
  a: "αɑ",
  b: "βϐ",
  e: "ε",
  i: "ιɪı",
  k: "κϰ",
  n: "η",
  o: "οσ",
  p: "ρϱ",
  t: "τ",
  u: "υʋ",
  v: "ν",
  w: "ω",
  x: "χ",
  y: "γ",
  z: "ζ",
};

/** Small capitals and other phonetic letters, stroke letters, Cherokee and Armenian ones met in forged words. */
const OTHERS: Readonly<Record<string, string>> = {
  a: "ᴀⲁꭺ",
  b: "ʙ",
  c: "ᴄϲⅽⲥꮯ",
  d: "ᴅđꭰ",
  e: "ᴇɛǝəꭼ",
  f: "ꜰẝƒ",
  g: "ɢɡցᶃ",
  h: "ʜհħ",
  i: "ꭵⵏ",
  j: "ᴊϳ",
  k: "ᴋ",
  l: "ʟłⅼ",
  m: "ᴍⅿ",
  n: "ɴոռ",
  o: "ᴏօσøⲟ",
  p: "ᴘⲣ",
  q: "գ",
  r: "ʀɾꮁ",
  s: "ꜱʂꮪ",
  t: "ᴛŧ",
  u: "ᴜսᴜ",
  v: "ᴠⅴⱱ",
  w: "ᴡա",
  x: "ⅹ×",
  y: "ʏყ",
  z: "ᴢƶ",
};

const PUNCTUATION: Readonly<Record<string, string>> = {
  "'": "’‘ʼ′‛＇",
  '"': "“”„‟«»″「」『』〝〞",
  "-": "‐‑‒–—―−",
  "|": "｜ǀ∣❘│￨",
  "<": "‹＜﹤〈⟨❮˂",
  ">": "›＞﹥〉⟩❯˃",
  "/": "⁄∕",
  ":": "：꞉ː∶",
};

function tableOf(...groups: readonly Readonly<Record<string, string>>[]): ReadonlyMap<string, string> {
  const table = new Map<string, string>();
  for (const group of groups) {
    for (const [plain, likes] of Object.entries(group)) for (const like of likes) table.set(like, plain);
  }
  return table;
}

export const CONFUSABLES = tableOf(LOOKALIKES, GREEK, OTHERS, PUNCTUATION);

/** Letters that are drawn as emoji-like symbols and have no decomposition: first code point of a run from A to Z. */
const SYMBOL_ALPHABETS = [0x1f130, 0x1f150, 0x1f170, 0x1f1e6] as const;

export function symbolLetter(codePoint: number): string | undefined {
  for (const first of SYMBOL_ALPHABETS) {
    if (codePoint >= first && codePoint < first + 26) return String.fromCharCode(0x61 + codePoint - first);
  }
  return undefined;
}
