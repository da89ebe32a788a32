const LONGEST = 200;

/** Text of others as it may stand in a message: one line, no control characters, not endless. */
export function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").trim();
  return clean.length > LONGEST ? `${clean.slice(0, LONGEST)}…` : clean;
}
