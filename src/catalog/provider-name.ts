/** What model providers take as a name: `^[A-Za-z][A-Za-z0-9_-]{0,63}$`. */
export const MAX_NAME_LENGTH = 64;

/** Stands before a name that does not begin with a letter, or that would be a reserved one. */
export const LEAD = "t-";

const RESERVED = /^(?:skill__|toolcrib_)/;

/** Names that only Toolcrib itself gives out. */
export function isReservedName(name: string): boolean {
  return RESERVED.test(name);
}

/** Every other character becomes `-`. */
export function cleanCharacters(text: string): string {
  return text.replace(/[^A-Za-z0-9_-]/gu, "-");
}

export function needsLead(clean: string): boolean {
  return !/^[A-Za-z]/.test(clean) || isReservedName(clean);
}

/** Provider-safe but for its length. */
export function providerName(text: string): string {
  const clean = cleanCharacters(text);
  return needsLead(clean) ? LEAD + clean : clean;
}
