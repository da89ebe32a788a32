/**
 * The key of a keyed log. Lines of a keyed chain have an HMAC in place of a plain hash, so that only a holder of the key can
 * write a line that verifies. The key itself is in memory only; files name it by its id, which is derived from it.
 */
import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from "node:crypto";
import { ToolcribError } from "../../model/errors.ts";

/** The id and every line of the log can be used to test guesses, so a short key protects nothing. */
const MIN_KEY_CHARACTERS = 16;
const ID_LENGTH = 16;
const ID_TEXT = "toolcrib audit key id";
/** What is signed other than lines, which begin with a brace. */
const HEADS_TEXT = "toolcrib audit heads\n";

export class AuditKey {
  readonly id: string;
  /** Can be given to another thread. */
  readonly secret: KeyObject;

  /** @param name The config key that the text came from; messages name it. */
  constructor(text: string | KeyObject, name = "audit.key") {
    if (typeof text === "string" && text.length < MIN_KEY_CHARACTERS) {
      throw new ToolcribError(
        "invalid_config",
        `The key of \`${name}\` has ${text.length} characters; at least ${MIN_KEY_CHARACTERS} are needed.`,
        { hint: "`openssl rand -hex 32` prints a good one." },
      );
    }
    this.secret = typeof text === "string" ? createSecretKey(Buffer.from(text, "utf8")) : text;
    this.id = this.digest(ID_TEXT).slice(0, ID_LENGTH);
  }

  /** In hex, as long as a SHA-256. */
  digest(text: string): string {
    return createHmac("sha256", this.secret).update(text).digest("hex");
  }

  signHeads(text: string): string {
    return this.digest(HEADS_TEXT + text);
  }

  hasSignedHeads(text: string, signature: string): boolean {
    const [expected, given] = [Buffer.from(this.signHeads(text)), Buffer.from(signature)];
    return expected.length === given.length && timingSafeEqual(expected, given);
  }
}

export interface AuditKeys {
  /** What is written is keyed with this one; plain if absent. */
  readonly current?: AuditKey | undefined;
  /** By id, the current one included: what is read may be keyed with any of them. */
  readonly known: ReadonlyMap<string, AuditKey>;
}

export const NO_KEYS: AuditKeys = { known: new Map() };

/** @param old Keys that were used before. */
export function auditKeysOf(current: AuditKey | undefined, old: readonly AuditKey[] = []): AuditKeys {
  const all = current === undefined ? old : [current, ...old];
  return { current, known: new Map(all.map((key) => [key.id, key])) };
}

export function digestOf(text: string, key: AuditKey | undefined): string {
  return key === undefined ? hash("sha256", text) : key.digest(text);
}
