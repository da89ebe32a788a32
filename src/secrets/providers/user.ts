/** `secret://user/NAME`: a value of the user whose connection it is, and of nobody else. */
import { join } from "node:path";
import { SecretFailure, type SecretProvider } from "../provider.ts";
import { readSecretFile } from "./file.ts";

export const userProvider: SecretProvider = {
  name: "user",
  cached: false,
  async resolve({ path }, { user, home, warn }) {
    if (user === undefined) {
      throw new SecretFailure("belongs to a user, and this connection is nobody's own", {
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
 * A folder name that no other user has, on file systems that do not tell case apart too: only lower-case letters and
 * digits stand for themselves, so that no identity can climb out of the folder or share another's.
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
