/** The start of a printed reason; the reporter looks for it (closing-line.ts). */
export const SKIP_PREFIX = "Not tested here: ";

/**
 * Prints why tests of this file are skipped, and returns whether they are. A requirement whose tests were all skipped fails
 * the run unless its file printed such a reason.
 *
 * @param reason The missing part of the system, or undefined if it is there.
 */
export function isMissing(subject: string, reason: string | undefined): boolean {
  if (reason === undefined) return false;
  console.warn(`${SKIP_PREFIX}${subject}: ${reason}`);
  return true;
}
