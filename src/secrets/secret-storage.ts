/** Puts a secret where only its owner can read it: the keychain of the machine, else a file of mode 0600. */
import { chmod, mkdir, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { writeAtomic } from "../files/write-atomic.ts";
import { SecretFailure } from "./provider.ts";
import { storeInKeychain } from "./providers/keychain.ts";
import { userSecretFile } from "./providers/local.ts";
import { writeReference } from "./secret-references.ts";

export interface StoredSecret {
  readonly stored: "keychain" | "file";
  /** The reference for the config. */
  readonly reference: string;
  readonly file?: string;
  /** Why it is not in the keychain. */
  readonly note?: string;
}

export interface SecretPlace {
  readonly env: NodeJS.ProcessEnv;
  /** Toolcrib's own folder. */
  readonly home: string;
  /** The user's, written as `~`. */
  readonly userHome: string;
}

/** Unlocking a keychain may ask its owner for a password. */
export const KEYCHAIN_TIMEOUT_MS = 60_000;
/** Under which Toolcrib's own secrets are in the keychain. */
export const KEYCHAIN_SERVICE = "toolcrib";

export async function storeSecret(name: string, value: string, place: SecretPlace): Promise<StoredSecret> {
  try {
    const access = { env: place.env, signal: AbortSignal.timeout(KEYCHAIN_TIMEOUT_MS) };
    await storeInKeychain({ service: KEYCHAIN_SERVICE, account: name, value }, access);
    return { stored: "keychain", reference: keychainReference(name) };
  } catch (error) {
    if (!(error instanceof SecretFailure)) throw error;
    const file = secretFile(name, place);
    await writePrivate(file, value);
    const note = `There is no keychain to use: it ${error.message}.`;
    return { stored: "file", reference: fileReference(file, place), file, note };
  }
}

/** Always a file: the hub reads it for that user when no one is there to unlock a keychain. */
export async function storeUserSecret(
  user: string,
  name: string,
  value: string,
  { home }: SecretPlace,
): Promise<StoredSecret> {
  const file = userSecretFile(home, user, name);
  await writePrivate(file, value);
  return { stored: "file", reference: writeReference("user", name), file };
}

export function keychainReference(name: string): string {
  return writeReference("keychain", `${KEYCHAIN_SERVICE}/${name}`);
}

/** Where a secret is that has no keychain to be in. */
export function secretFile(name: string, { home }: SecretPlace): string {
  return join(home, "secrets", name);
}

export function fileReference(file: string, { userHome }: SecretPlace): string {
  const fromHome = relative(userHome, file);
  const isInHome = fromHome !== "" && !fromHome.startsWith("..");
  return writeReference("file", isInHome ? `~/${fromHome.split(sep).join("/")}` : file);
}

async function writePrivate(file: string, value: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  // A file that is there keeps its mode when it is replaced, so it must be right before.
  if ((await stat(file).catch(() => undefined)) !== undefined) await chmod(file, 0o600);
  await writeAtomic(file, `${value}\n`, { mode: 0o600 });
}
