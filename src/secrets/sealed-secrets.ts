/** Secrets that are kept in the store, which never sees their text. */
import { promisify } from "node:util";
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  randomBytes,
  randomUUID,
  scrypt,
  type ScryptOptions,
} from "node:crypto";
import { link, mkdir, open, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { SecretFailure } from "./provider.ts";
import { systemErrorCode } from "../model/errors.ts";

/** A sealed text, and which key it needs. */
export interface SealedText extends Sealed {
  readonly keyId: string;
}

export interface SealedEntry extends SealedText {
  readonly name: string;
  readonly updatedAt: string;
}

/** Where sealed values lie. */
export interface SealedValueStore {
  get(name: string): Promise<SealedEntry | undefined>;
  put(value: SealedEntry): Promise<void>;
  remove(name: string): Promise<boolean>;
}

interface SealedSecretsOptions {
  readonly values: SealedValueStore;
  readonly key: SealingKey;
  readonly clock: Clock;
}

export class SealedSecrets {
  readonly #options: SealedSecretsOptions;
  #key: Uint8Array | undefined;

  constructor(options: SealedSecretsOptions) {
    this.#options = options;
  }

  async put(name: string, text: string): Promise<void> {
    const { values, clock } = this.#options;
    const sealed = await this.seal(name, text);
    await values.put({ name, ...sealed, updatedAt: new Date(clock.now()).toISOString() });
  }

  /** For a text that is kept elsewhere. */
  async seal(name: string, text: string): Promise<SealedText> {
    this.#key ??= await this.#options.key.made();
    return { ...seal(name, text, this.#key), keyId: keyIdOf(this.#key) };
  }

  /** Throws SecretFailure where there is none, or where it cannot be opened. */
  async get(name: string): Promise<string> {
    const entry = await this.#options.values.get(name);
    if (entry === undefined) {
      throw new SecretFailure("is not in the store", { hint: `toolcrib secrets set store/${name} stores it.` });
    }
    return this.unseal(name, entry);
  }

  /** Throws SecretFailure where it cannot be opened. */
  async unseal(name: string, entry: SealedText): Promise<string> {
    this.#key ??= await this.#options.key.existing();
    if (this.#key === undefined) {
      throw new SecretFailure("cannot be opened: the key file of the store is gone", {
        hint: "Bring back store.key, or set `secrets.key`.",
      });
    }
    if (entry.keyId !== keyIdOf(this.#key)) {
      throw new SecretFailure("was sealed with another key than the one in use", {
        hint: "Set `secrets.key`, or bring back store.key, as it was then; or store the secret again.",
      });
    }
    const text = unseal(name, entry, this.#key);
    if (text === undefined) {
      throw new SecretFailure("cannot be opened: the stored value was changed or damaged", {
        hint: "Store the secret again.",
      });
    }
    return text;
  }

  /** The next use reads the key again: the config may name another one. */
  forgetKey(): void {
    this.#key = undefined;
  }

  remove(name: string): Promise<boolean> {
    return this.#options.values.remove(name);
  }
}

/** The key that secrets in the store are sealed with: from the config by reference, or from a file of the home. */
export interface SealingKey {
  /** undefined if there is none yet. */
  existing(): Promise<Uint8Array | undefined>;
  /** Makes one if there is none. */
  made(): Promise<Uint8Array>;
}

const SALT_BYTES = 16;
/** About 32 MiB and a tenth of a second; the key is derived once per process. */
const SCRYPT = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 };

/** Sets a text unless it is there; resolves with what is there then. */
type SetOnce = (key: string, value: string) => Promise<string>;

/** @param text Looks `secrets.key` up. */
export function keyFromText(text: () => Promise<string>, setOnce: SetOnce): SealingKey {
  const made = async (): Promise<Uint8Array> => {
    const given = await text();
    const known = keyBytes(given);
    if (known !== undefined) return known;
    const salt = await setOnce("secrets.salt", randomBytes(SALT_BYTES).toString("base64"));
    return deriveKey(given, Buffer.from(salt, "base64"), KEY_BYTES, SCRYPT);
  };
  return { existing: made, made };
}

/** 32 bytes as hex or base64; undefined for a passphrase. */
function keyBytes(text: string): Uint8Array | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, "hex");
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64");
  return bytes.length === KEY_BYTES ? bytes : undefined;
}

const deriveKey = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

export function keyFile(home: string): SealingKey {
  const file = join(home, "store.key");
  return {
    existing: () => readKey(file),
    made: async () => (await readKey(file)) ?? makeKey(file),
  };
}

async function readKey(file: string): Promise<Uint8Array | undefined> {
  let handle;
  try {
    handle = await open(file, "r");
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "ENOENT") return undefined;
    throw new SecretFailure(`cannot be opened: the key file ${file} cannot be read (${code})`, { cause: error });
  }
  try {
    const { mode } = await handle.stat();
    if (process.platform !== "win32" && (mode & 0o077) !== 0) {
      throw new SecretFailure(`cannot be opened: other users can read the key file ${file}`, {
        hint: `chmod 600 ${file}, and change the secrets if others may have read it.`,
      });
    }
    const key = keyBytes((await handle.readFile("utf8")).trim());
    if (key !== undefined) return key;
    throw new SecretFailure(`cannot be opened: ${file} contains no key`, {
      hint: "It is 32 bytes as base64. Bring back the file that was there.",
    });
  } finally {
    await handle.close();
  }
}

/** Two processes may do it at once: a link appears with its content or not at all, and the first one wins. */
async function makeKey(file: string): Promise<Uint8Array> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomUUID()}`;
  try {
    const handle = await open(draft, "wx", 0o600);
    try {
      await handle.writeFile(`${randomBytes(KEY_BYTES).toString("base64")}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await link(draft, file).catch((error: unknown) => {
      if (systemErrorCode(error) !== "EEXIST") throw error;
    });
  } finally {
    await rm(draft, { force: true });
  }
  const key = await readKey(file);
  if (key === undefined) throw new SecretFailure(`cannot be sealed: the key file ${file} is gone again`);
  return key;
}

/** AES-256-GCM. The name goes in as associated data, so that a value cannot be passed off as another one. */
const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** All base64. */
interface Sealed {
  readonly nonce: string;
  readonly ciphertext: string;
  readonly tag: string;
}

function seal(name: string, text: string, key: Uint8Array): Sealed {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(name, "utf8"));
  const ciphertext = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return {
    nonce: nonce.toString("base64"),
    ciphertext: ciphertext.toString("base64"),
    tag: cipher.getAuthTag().toString("base64"),
  };
}

/** undefined for another key or another name, and for what was changed since. */
function unseal(name: string, { nonce, ciphertext, tag }: Sealed, key: Uint8Array): string | undefined {
  try {
    const decipher = createDecipheriv(ALGORITHM, key, Buffer.from(nonce, "base64"), { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(name, "utf8"));
    decipher.setAuthTag(Buffer.from(tag, "base64"));
    return Buffer.concat([decipher.update(Buffer.from(ciphertext, "base64")), decipher.final()]).toString("utf8");
  } catch {
    return undefined;
  }
}

/** Tells keys apart and says nothing about them. */
function keyIdOf(key: Uint8Array): string {
  return createHash("sha256").update("toolcrib sealing key\0").update(key).digest("hex").slice(0, 16);
}
