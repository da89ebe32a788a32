/** AES-256-GCM. The name goes in as associated data, so that a value cannot be passed off as another one. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

const ALGORITHM = "aes-256-gcm";
export const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** All base64. */
export interface Sealed {
  readonly nonce: string;
  readonly ciphertext: string;
  readonly tag: string;
}

export function seal(name: string, text: string, key: Uint8Array): Sealed {
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
export function unseal(name: string, { nonce, ciphertext, tag }: Sealed, key: Uint8Array): string | undefined {
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
export function keyIdOf(key: Uint8Array): string {
  return createHash("sha256").update("toolcrib sealing key\0").update(key).digest("hex").slice(0, 16);
}
