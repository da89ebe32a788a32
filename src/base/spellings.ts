/** Other spellings of a text, read as plain text: percent signs and numbers for characters, letters turned around or by thirteen. */

export function fromPercent(found: string): string {
  const bytes = Buffer.from(found, "latin1");
  let count = 0;
  for (let at = 0; at < bytes.length; at += 1, count += 1) {
    const high = bytes[at] === 0x25 ? digitOf(bytes[at + 1]) : NO_DIGIT;
    const low = high < 16 ? digitOf(bytes[at + 2]) : NO_DIGIT;
    if (low < 16) at += 2;
    bytes[count] = low < 16 ? high * 16 + low : (bytes[at] ?? 0);
  }
  return bytes.toString("utf8", 0, count);
}

const NO_DIGIT = 36;
/** By ASCII character: its value as a digit of up to 36. */
const DIGITS = Uint8Array.from({ length: 128 }, (_, unit) => {
  const value = Number.parseInt(String.fromCharCode(unit), NO_DIGIT);
  return Number.isNaN(value) ? NO_DIGIT : value;
});

function digitOf(unit: number | undefined): number {
  return DIGITS[unit ?? 0] ?? NO_DIGIT;
}

/** Characters by their numbers, with anything between them; behind "x" or "u" they are hexadecimal. */
export function fromNumbers(found: string, radix = 10): string {
  const units = new Uint16Array(found.length);
  let count = 0;
  let number = -1;
  let base = radix;
  for (let at = 0; at <= found.length; at += 1) {
    const unit = found.charCodeAt(at);
    const digit = unit < 128 ? digitOf(unit) : NO_DIGIT;
    if (digit < base) {
      number = Math.max(0, number) * base + digit;
      continue;
    }
    if (number > 0xffff && number <= 0x10ffff) {
      units[count] = 0xd800 + ((number - 0x10000) >> 10);
      count += 1;
      number = 0xdc00 + (number & 0x3ff);
    }
    if (number >= 0 && number <= 0xffff) {
      units[count] = number;
      count += 1;
    }
    number = -1;
    base = unit === 0x78 || unit === 0x75 ? 16 : radix;
  }
  return Buffer.from(units.buffer, 0, count * 2).toString("utf16le");
}

export function reversed(text: string): string {
  const bytes = Buffer.from(Buffer.from(text, "utf16le").toReversed().buffer);
  return bytes
    .swap16()
    .toString("utf16le")
    .replaceAll(/([\udc00-\udfff])([\ud800-\udbff])/g, "$2$1");
}

/** By thirteen letters of the alphabet. */
export function rotate(line: string): string {
  const bytes = Buffer.from(line, "utf16le");
  for (let at = 0; at < bytes.length; at += 2) {
    const letter = (bytes[at] ?? 0) | 0x20;
    if (bytes[at + 1] === 0 && letter >= 0x61 && letter <= 0x7a)
      bytes[at] = (bytes[at] ?? 0) + (letter < 0x6e ? 13 : -13);
  }
  return bytes.toString("utf16le");
}
