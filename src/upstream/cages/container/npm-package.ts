/** Which npm package a command line starts, if it is one that an image can be made for. */
import { basename, dirname, join } from "node:path";
import { ToolcribError } from "../../../model/errors.ts";

export interface NpmLaunch {
  /** Such as `@scope/name`. */
  readonly name: string;
  /** One exact version. */
  readonly version: string;
  /** The program of the package; its only one, or the one of its own name, if absent. */
  readonly bin: string | undefined;
  /** For the server itself. */
  readonly args: readonly string[];
  /** npm, beside the npx that was named. */
  readonly npm: string;
}

const EXACT = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/;
// What begins with a dash would be an option of npm.
const PACKAGE = /^((?:@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*)(?:@(.+))?$/i;

/** undefined for a command that is not npm's. Throws `invalid_config` for a package without an exact version. */
export function npmLaunch(command: string, args: readonly string[]): NpmLaunch | undefined {
  const program = basename(command).replace(/\.(?:cmd|exe)$/i, "");
  const npm = basename(command) === command ? "npm" : join(dirname(command), "npm");
  if (program === "npx") return readWords(args, npm);
  const [verb, ...rest] = args;
  return program === "npm" && (verb === "exec" || verb === "x") ? readWords(rest, npm) : undefined;
}

/** `[-y] [--package=name@version] name@version|bin [--] args…` */
function readWords(words: readonly string[], npm: string): NpmLaunch {
  let spec: string | undefined;
  let index = 0;
  for (; index < words.length; index++) {
    const word = words[index] ?? "";
    if (/^(?:-y|--yes|-q|--quiet|--no|--prefer-online|--prefer-offline)$/.test(word)) continue;
    if (word === "--") {
      index++;
      break;
    }
    const [, inPlace] = /^--package=(.+)$/.exec(word) ?? [];
    const following = word === "-p" || word === "--package" ? words[++index] : undefined;
    if (inPlace === undefined && following === undefined) {
      if (word.startsWith("-")) throw unclear(`the option ${word} is not understood`);
      break;
    }
    if (spec !== undefined) throw unclear("it names several packages");
    spec = inPlace ?? following;
  }
  const first = words[index];
  if (first === undefined) throw unclear("it names no program");
  const after = words.slice(index + 1);
  const args = after[0] === "--" && spec === undefined ? after.slice(1) : after;
  const { name, version } = readPackage(spec ?? first);
  return { name, version, bin: spec === undefined ? undefined : first, args, npm };
}

function readPackage(spec: string): { name: string; version: string } {
  const [, name, version] = PACKAGE.exec(spec) ?? [];
  if (name === undefined) throw unclear(`${JSON.stringify(spec)} is no package of a registry`);
  if (version !== undefined && EXACT.test(version)) return { name, version };
  const found = version === undefined ? "no version" : `the version ${JSON.stringify(version)}`;
  throw new ToolcribError(
    "invalid_config",
    `An image is made for one exact version of an npm package; ${name} is named with ${found}.`,
    { hint: `Write ${name}@<version> in \`args\`, such as ${name}@1.2.3.`, details: { sent: false } },
  );
}

function unclear(reason: string): ToolcribError {
  return new ToolcribError("invalid_config", `No image can be made for this npx command: ${reason}.`, {
    hint: 'Write "args": ["-y", "package@1.2.3", …], or give `sandbox.image`.',
    details: { sent: false },
  });
}
