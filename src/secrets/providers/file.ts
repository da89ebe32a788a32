import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, resolve as resolvePath } from "node:path";
import { SecretFailure, type ProviderContext, type SecretProvider } from "../provider.ts";
import { decodeSecret, LARGEST_SECRET, withoutFinalNewline } from "../secret-text.ts";

export const fileProvider: SecretProvider = {
  name: "file",
  cached: false,
  async resolve({ path }, context) {
    const places = placesOf(path, context);
    for (const place of places) {
      const value = await readSecretFile(place, context.warn);
      if (value !== undefined) return value;
    }
    throw new SecretFailure(`is not there: no file ${places.join(" nor ")}`, { hint: "Check the path." });
  },
};

/**
 * `~/…`, `/…` (after the slash that ends the provider), or a relative path. One that does not begin with `./` or `../` is
 * looked for beside the config first, then from the root, because `secret://file/run/secrets/db` is how many write it.
 */
function placesOf(path: string, { env, baseDir }: ProviderContext): string[] {
  if (path === "~" || path.startsWith("~/")) return [join(env["HOME"] || homedir(), path.slice(1))];
  if (isAbsolute(path)) return [path];
  const beside = resolvePath(baseDir, path);
  return /^\.{1,2}(?:\/|$)/.test(path) ? [beside] : [beside, resolvePath("/", path)];
}

/** The text of a file without its last line break; undefined where there is no file. */
export async function readSecretFile(file: string, warn: (message: string) => void): Promise<string | undefined> {
  try {
    // Asked first: opening a pipe would wait for a writer.
    const found = await stat(file);
    if (!found.isFile()) throw new SecretFailure(`is no regular file: ${file}`);
    const handle = await open(file, constants.O_RDONLY);
    try {
      const { size, mode } = await handle.stat();
      if (size > LARGEST_SECRET) throw new SecretFailure(`is larger than ${LARGEST_SECRET / 1024} KiB: ${file}`);
      if (isExposed(file, mode)) {
        warn(`The secret file ${file} can be read by other users; chmod 600 makes it yours alone.`);
      }
      const bytes = Buffer.alloc(LARGEST_SECRET + 1);
      let length = 0;
      for (let read = -1; read !== 0 && length < bytes.length; length += read) {
        ({ bytesRead: read } = await handle.read(bytes, length, bytes.length - length, length));
      }
      // A file of /proc has no size of its own.
      if (length > LARGEST_SECRET) throw new SecretFailure(`is larger than ${LARGEST_SECRET / 1024} KiB: ${file}`);
      const text = withoutFinalNewline(decodeSecret(bytes.subarray(0, length)));
      if (text === "") throw new SecretFailure(`is empty: ${file}`);
      return text;
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof SecretFailure) throw error;
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new SecretFailure(`cannot be read (${String(code)}): ${file}`, { cause: error });
  }
}

/** Containers mount secrets readable for all on purpose: there is one user in them. */
function isExposed(file: string, mode: number): boolean {
  return process.platform !== "win32" && (mode & 0o077) !== 0 && !/^\/(?:var\/)?run\/secrets\//.test(file);
}
