/** Which texts name an npm package: `npm:name`, `npm:@scope/name@^1.2`, `@scope/name`. */
import { ToolcribError } from "../../model/errors.ts";

const NAME = /^(?:@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*$/i;
/** A version, a range or a tag. What could name another kind of package (an address, a file, an alias) has a colon or a slash. */
const RANGE = /^[0-9A-Za-z.^~<>=|*+ -]{1,100}$/;

export function looksLikeNpm(source: string): boolean {
  return /^npm:/i.test(source) || /^@[^/\\]+\/[^/\\]+$/.test(source);
}

/** The spec as npm takes it. */
export function parseNpmSource(source: string): string {
  const spec = source.replace(/^npm:/i, "");
  const at = spec.indexOf("@", 1);
  const name = at === -1 ? spec : spec.slice(0, at);
  const range = at === -1 ? undefined : spec.slice(at + 1);
  if (!NAME.test(name) || name.length > 214) {
    throw bad(`${JSON.stringify(name.slice(0, 100))} is no name of an npm package.`);
  }
  if (range !== undefined && !RANGE.test(range)) {
    throw bad(`What stands after ${name}@ is no version, range or tag.`);
  }
  return spec;
}

function bad(message: string): ToolcribError {
  return new ToolcribError("invalid_arguments", message, {
    hint: "Write npm:name or npm:@scope/name, with @version if needed.",
  });
}
