/** Stores the secrets of an install so that it can be undone: under unused names, with files in the change set. */
import { chmod, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { ChangeSet } from "../../files/change-set/change-set.ts";
import { systemClock } from "../../base/clock.ts";
import { SecretFailure, withoutFinalNewline } from "../../secrets/provider.ts";
import { keychainProvider, removeFromKeychain, storeInKeychain } from "../../secrets/providers/keychain.ts";
import {
  fileReference,
  KEYCHAIN_SERVICE,
  KEYCHAIN_TIMEOUT_MS,
  keychainReference,
  secretFile,
  type SecretPlace,
} from "../../secrets/secret-storage.ts";

export interface InstalledSecret {
  readonly name: string;
  readonly stored: "keychain" | "file";
  readonly file?: string;
}

interface InstallSecretsOptions {
  readonly changes: ChangeSet;
  readonly place: SecretPlace;
  /** Gets the name before it is used in the keychain. */
  readonly onKeychain: (name: string) => Promise<void>;
}

export class InstallSecrets {
  readonly #options: InstallSecretsOptions;
  readonly #kept: InstalledSecret[] = [];
  #keychainWorks = true;

  constructor(options: InstallSecretsOptions) {
    this.#options = options;
  }

  /** Those that were stored now. */
  get kept(): readonly InstalledSecret[] {
    return this.#kept;
  }

  /** Resolves with the reference to write into the config. A secret of that name with another value stays as it is. */
  async keep(wanted: string, value: string): Promise<string> {
    for (let number = 1; ; number++) {
      const name = numberedName(wanted, number);
      const there = await lookUpSecret(name, this.#options.place, this.#keychainWorks);
      if (typeof there === "string") return this.#store(name, value);
      if (there.value === value) return there.reference;
    }
  }

  async #store(name: string, value: string): Promise<string> {
    const { changes, place, onKeychain } = this.#options;
    if (this.#keychainWorks) {
      try {
        // Before it is stored: a killed process leaves an unused name behind, not a secret.
        await onKeychain(name);
        const entry = { service: KEYCHAIN_SERVICE, account: name, value };
        await storeInKeychain(entry, keychainAccess(place.env));
        this.#kept.push({ name, stored: "keychain" });
        return keychainReference(name);
      } catch (error) {
        if (!(error instanceof SecretFailure)) throw error;
        this.#keychainWorks = false;
      }
    }
    const file = secretFile(name, place);
    await changes.editFile(file, () => `${value}\n`, { mode: 0o600 });
    await chmod(dirname(file), 0o700);
    this.#kept.push({ name, stored: "file", file });
    return fileReference(file, place);
  }
}

/** The reference that `keep` would return. A readable keychain counts as writable. */
export async function previewSecret(
  wanted: string,
  value: string,
  place: SecretPlace,
): Promise<{ readonly name: string; readonly reference: string; readonly isNew: boolean }> {
  for (let number = 1; ; number++) {
    const name = numberedName(wanted, number);
    const there = await lookUpSecret(name, place, true);
    if (there === "absent") return { name, reference: keychainReference(name), isNew: true };
    if (there === "no keychain") return { name, reference: fileReference(secretFile(name, place), place), isNew: true };
    if (there.value === value) return { name, reference: there.reference, isNew: false };
  }
}

function numberedName(wanted: string, number: number): string {
  return number === 1 ? wanted : `${wanted.slice(0, 60)}_${number}`;
}

async function lookUpSecret(
  name: string,
  place: SecretPlace,
  hasKeychain: boolean,
): Promise<{ readonly value: string; readonly reference: string } | "absent" | "no keychain"> {
  const file = secretFile(name, place);
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text !== undefined) return { value: withoutFinalNewline(text), reference: fileReference(file, place) };
  if (!hasKeychain) return "no keychain";
  try {
    const path = `${KEYCHAIN_SERVICE}/${name}`;
    const value = await keychainProvider().resolve(
      { kind: "secret", text: "", provider: "keychain", path },
      {
        ...keychainAccess(place.env),
        clock: systemClock,
        home: place.home,
        baseDir: place.home,
        user: undefined,
        commands: {},
        conceal: () => {},
        warn: () => {},
      },
    );
    return { value, reference: keychainReference(name) };
  } catch (error) {
    if (!(error instanceof SecretFailure)) throw error;
    // The provider distinguishes the two only by its message.
    return error.message === "is not in the keychain" || error.message === "is empty" ? "absent" : "no keychain";
  }
}

/** It is left in place if the keychain is locked: only the user can read it. */
export async function removeKeychainSecret(name: string, env: NodeJS.ProcessEnv): Promise<void> {
  try {
    await removeFromKeychain({ service: KEYCHAIN_SERVICE, account: name }, keychainAccess(env));
  } catch (error) {
    if (!(error instanceof SecretFailure)) throw error;
  }
}

function keychainAccess(env: NodeJS.ProcessEnv): { env: NodeJS.ProcessEnv; signal: AbortSignal } {
  return { env, signal: AbortSignal.timeout(KEYCHAIN_TIMEOUT_MS) };
}

/** A name that says whose it is: `GITHUB_TOKEN` of github stays, `TOKEN` becomes `GITHUB_TOKEN`. */
export function secretName(serverId: string, parameter: string): string {
  const plain = (text: string): string => text.replaceAll(/[^A-Za-z0-9]+/g, "_").replaceAll(/^_+|(?<!_)_+$/g, "");
  const owner = plain(serverId).toUpperCase();
  const own = plain(parameter) || "SECRET";
  const name = own.toUpperCase().startsWith(`${owner}_`) ? own : `${owner}_${own}`;
  return (/^[A-Za-z_]/.test(name) ? name : `_${name}`).slice(0, 64);
}
