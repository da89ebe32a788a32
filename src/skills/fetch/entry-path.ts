/** Which names an archive's entry may have. A name that could lead elsewhere, on any system, refuses the archive. */
import { ToolcribError } from "../../model/errors.ts";
import { printable } from "./printable.ts";

const LONGEST = 1024;
const DEEPEST = 32;

/**
 * The parts of the path that `name` stands for below the folder, without `.`; empty for the folder itself.
 * Throws `blocked` for what is absolute, climbs, has a drive letter or a backslash, or cannot be a file name.
 */
export function entryPath(name: string, platform: NodeJS.Platform = process.platform): string[] {
  if (name.includes("\\")) throw refused(name, "has a backslash in its name");
  if (name.startsWith("/")) throw refused(name, "has an absolute name");
  if (/^[A-Za-z]:/.test(name)) throw refused(name, "has a drive letter in its name");
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(name)) throw refused(name, "has a control character in its name");
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw refused(name, "climbs out of the folder");
  if (name.length > LONGEST || parts.length > DEEPEST) throw refused(name, "has a name that is too long or too deep");
  // Windows reads `a:b` as a stream of a, and drops dots and spaces at the end.
  if (platform === "win32" && parts.some((part) => /[<>:"|?*]|[. ]$/.test(part))) {
    throw refused(name, "has a name that Windows cannot hold");
  }
  return parts;
}

/** Equal for names that are one file on a system that ignores case or the form of accents. */
export function sameNameKey(parts: readonly string[]): string {
  return parts.join("/").normalize("NFC").toLowerCase();
}

export function refused(name: string, why: string): ToolcribError {
  return new ToolcribError("blocked", `The entry ${JSON.stringify(printable(name))} ${why}; nothing was unpacked.`, {
    hint: "An honest archive holds nothing of the kind. Ask its author, or unpack and look at it yourself.",
    details: { entry: printable(name) },
  });
}
