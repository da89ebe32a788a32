import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, resolve as resolvePath } from "node:path";
import {
  decodeSecret,
  MAX_SECRET_BYTES,
  type ProviderContext,
  runCommand,
  SecretFailure,
  type SecretProvider,
  withoutFinalNewline,
} from "../provider.ts";
import type { SealedSecrets } from "../sealed-secrets.ts";
import { systemErrorCode } from "../../model/errors.ts";

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
    if (!found.isFile()) throw new SecretFailure(`is not a regular file: ${file}`);
    const handle = await open(file, constants.O_RDONLY);
    try {
      const { size, mode } = await handle.stat();
      if (size > MAX_SECRET_BYTES) throw new SecretFailure(`is larger than ${MAX_SECRET_BYTES / 1024} KiB: ${file}`);
      if (isExposed(file, mode)) {
        warn(`The secret file ${file} can be read by other users; chmod 600 makes it yours alone.`);
      }
      const bytes = Buffer.alloc(MAX_SECRET_BYTES + 1);
      let length = 0;
      for (let read = -1; read !== 0 && length < bytes.length; length += read) {
        ({ bytesRead: read } = await handle.read(bytes, length, bytes.length - length, length));
      }
      // A file of /proc reports no size.
      if (length > MAX_SECRET_BYTES) throw new SecretFailure(`is larger than ${MAX_SECRET_BYTES / 1024} KiB: ${file}`);
      const text = withoutFinalNewline(decodeSecret(bytes.subarray(0, length)));
      if (text === "") throw new SecretFailure(`is empty: ${file}`);
      return text;
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof SecretFailure) throw error;
    const code = systemErrorCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new SecretFailure(`cannot be read (${code}): ${file}`, { cause: error });
  }
}

/** Containers mount secrets readable for all on purpose: there is one user in them. */
function isExposed(file: string, mode: number): boolean {
  return process.platform !== "win32" && (mode & 0o077) !== 0 && !/^\/(?:var\/)?run\/secrets\//.test(file);
}

/** `secret://user/NAME`: a value of the user whose connection it is. */
export const userProvider: SecretProvider = {
  name: "user",
  cached: false,
  async resolve({ path }, { user, home, warn }) {
    if (user === undefined) {
      throw new SecretFailure("belongs to a user, and this connection does not", {
        hint: 'Set `isolation` of the server to "user".',
      });
    }
    const value = await readSecretFile(userSecretFile(home, user, path), warn);
    if (value !== undefined) return value;
    const hint = `toolcrib secrets set ${path} --user ${JSON.stringify(user)}`;
    throw new SecretFailure(`is not set for the user ${JSON.stringify(user)}`, { hint });
  },
};

export function userSecretFile(home: string, user: string, name: string): string {
  return join(home, "secrets", folderOf(user), name);
}

/**
 * A folder name that no other user has, also on file systems that ignore case: all but lower-case letters
 * and digits are encoded, so that no identity can leave the folder or share another's.
 */
function folderOf(user: string): string {
  if (user === "") throw new SecretFailure("belongs to a user, and the identity is empty");
  const safe = /[a-z0-9_@-]/;
  return Array.from(Buffer.from(user, "utf8"), (byte, index) => {
    const char = String.fromCharCode(byte);
    const isSafe = byte < 0x80 && (safe.test(char) || (char === "." && index > 0));
    return isSafe ? char : `%${byte.toString(16).padStart(2, "0")}`;
  }).join("");
}

export const envProvider: SecretProvider = {
  name: "env",
  cached: false,
  async resolve({ path }, { env }) {
    const value = env[path];
    const hint = `Set ${path} in the environment that Toolcrib runs in.`;
    if (value === undefined) throw new SecretFailure("is not set", { hint });
    if (value === "") throw new SecretFailure("is empty", { hint });
    return value;
  },
};

/** `secret://exec/name/argument`: the program that `secrets.exec.name` of the config names prints the secret. */
export const execProvider: SecretProvider = {
  name: "exec",
  cached: true,
  async resolve({ path }, { commands, env, baseDir, signal }) {
    const slash = path.indexOf("/");
    const name = slash === -1 ? path : path.slice(0, slash);
    // One argument, slashes and all: names in pass and op have them.
    const extra = slash === -1 ? [] : [path.slice(slash + 1)];
    const [program, ...args] = Object.hasOwn(commands, name) ? (commands[name] ?? []) : [];
    if (program === undefined) {
      const hint = `Set secrets.exec.${name} in the config, such as ["op", "read"].`;
      throw new SecretFailure(`names the command ${JSON.stringify(name)}, which the config does not have`, { hint });
    }
    const missing = { hint: "Install it, or check PATH." };
    const result = await runCommand(program, [...args, ...extra], { env, cwd: baseDir, signal, missing });
    if (result.exitCode !== 0) {
      const said = result.complaint === "" ? "" : `: ${result.complaint}`;
      throw new SecretFailure(`was not given: ${program} exited with ${result.exitCode}${said}`);
    }
    const value = withoutFinalNewline(result.stdout);
    if (value === "") throw new SecretFailure(`is empty: ${program} printed nothing`);
    if (value.length > MAX_SECRET_BYTES) throw new SecretFailure(`is larger than ${MAX_SECRET_BYTES / 1024} KiB`);
    return value;
  },
};

/** `secret://store/name`: sealed in the store of the hub. @param sealed Asked each time: the store is opened later than the first reference is looked up. */
export function storeProvider(sealed: () => SealedSecrets | undefined): SecretProvider {
  return {
    name: "store",
    cached: false,
    async resolve({ path }) {
      const secrets = sealed();
      if (secrets === undefined) {
        throw new SecretFailure("is in the store, and there is no store open here", {
          hint: "Only servers can have it, in a hub with a store.",
        });
      }
      return secrets.get(path);
    },
  };
}
