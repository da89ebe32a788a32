/** The key that secrets in the store are sealed with: from the config by reference, or from a file of the home. */
import { randomBytes, randomUUID, scrypt } from "node:crypto";
import { link, mkdir, open, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SecretFailure } from "../provider.ts";
import { KEY_BYTES } from "./seal.ts";

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
    return keyBytes(given) ?? derive(given, await setOnce("secrets.salt", randomBytes(SALT_BYTES).toString("base64")));
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

function derive(passphrase: string, salt: string): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    scrypt(passphrase, Buffer.from(salt, "base64"), KEY_BYTES, SCRYPT, (error, key) =>
      error === null ? resolve(key) : reject(error),
    );
  });
}

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
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT") return undefined;
    throw new SecretFailure(`cannot be opened: the key file ${file} cannot be read (${String(code)})`, {
      cause: error,
    });
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
    throw new SecretFailure(`cannot be opened: ${file} holds no key`, {
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
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    });
  } finally {
    await rm(draft, { force: true });
  }
  const key = await readKey(file);
  if (key === undefined) throw new SecretFailure(`cannot be sealed: the key file ${file} is gone again`);
  return key;
}
