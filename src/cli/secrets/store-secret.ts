/** Puts a secret where only its owner can read it: the keychain of the machine, else a file of mode 0600. */
import { chmod, mkdir, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { toolcribHome, userHome } from "../../config/find-config.ts";
import { writeAtomic } from "../../files/write-atomic.ts";
import { SecretFailure } from "../../secrets/provider.ts";
import { storeInKeychain } from "../../secrets/providers/keychain.ts";
import { userSecretFile } from "../../secrets/providers/user.ts";
import { writeReference } from "../../secrets/references.ts";

export interface StoredSecret {
  readonly stored: "keychain" | "file";
  /** What to write into the config. */
  readonly reference: string;
  readonly file?: string;
  /** Why it is not in the keychain. */
  readonly note?: string;
}

/** Unlocking a keychain may ask its owner for a password. */
const KEYCHAIN_TIMEOUT_MS = 60_000;
const SERVICE = "toolcrib";

export async function storeSecret(name: string, value: string, env: NodeJS.ProcessEnv): Promise<StoredSecret> {
  try {
    const access = { env, signal: AbortSignal.timeout(KEYCHAIN_TIMEOUT_MS) };
    await storeInKeychain({ service: SERVICE, account: name, value }, access);
    return { stored: "keychain", reference: writeReference("keychain", `${SERVICE}/${name}`) };
  } catch (error) {
    if (!(error instanceof SecretFailure)) throw error;
    const file = join(toolcribHome(env), "secrets", name);
    await writePrivate(file, value);
    return {
      stored: "file",
      reference: referenceTo(file, env),
      file,
      note: `There is no keychain to use: it ${error.message}.`,
    };
  }
}

/** Always a file: the hub reads it for that user while nobody is there to unlock a keychain. */
export async function storeUserSecret(
  user: string,
  name: string,
  value: string,
  env: NodeJS.ProcessEnv,
): Promise<StoredSecret> {
  const file = userSecretFile(toolcribHome(env), user, name);
  await writePrivate(file, value);
  return { stored: "file", reference: writeReference("user", name), file };
}

async function writePrivate(file: string, value: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  // A file that is there keeps its mode when it is replaced, so it must be right before.
  if ((await stat(file).catch(() => undefined)) !== undefined) await chmod(file, 0o600);
  await writeAtomic(file, `${value}\n`, { mode: 0o600 });
}

function referenceTo(file: string, env: NodeJS.ProcessEnv): string {
  const fromHome = relative(userHome(env), file);
  const isInHome = fromHome !== "" && !fromHome.startsWith("..");
  return writeReference("file", isInHome ? `~/${fromHome.split(sep).join("/")}` : file);
}
