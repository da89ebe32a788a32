/**
 * Whether a path with `/`, of a file inside a skill, stays inside on every platform: a registry may be written on one
 * and read on another.
 */
export function isSafePath(path: string): boolean {
  if (path === "" || path.length > 4096 || path.includes("\0")) return false;
  // A backslash is a separator and a colon a drive or a stream on Windows; elsewhere both are letters.
  if (process.platform === "win32" && /[\\:]/.test(path)) return false;
  return path.split("/").every((step) => step !== "" && step !== "." && step !== "..");
}
