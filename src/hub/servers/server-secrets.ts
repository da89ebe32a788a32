/**
 * What becomes of plain secrets in an entry that is to be stored: refused, or put where the operator chose, with a reference
 * in the entry. Each gets its own name and is never overwritten: another reference is what makes a server connect again.
 */
import { randomBytes } from "node:crypto";
import type { Config } from "../../model/config.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import {
  type PlaintextCredential,
  findPlaintextCredentials,
  replaceCredentials,
} from "../../secrets/plaintext-credentials.ts";
import { SecretFailure } from "../../secrets/provider.ts";
import { removeFromKeychain, storeInKeychain } from "../../secrets/providers/keychain.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { findReferences, type SecretReference, writeReference } from "../../secrets/secret-references.ts";
import type { SealedSecrets } from "../../secrets/sealed-secrets.ts";
import { KEYCHAIN_SERVICE, KEYCHAIN_TIMEOUT_MS } from "../../secrets/secret-storage.ts";

export interface ServerSecretsOptions {
  /** `secrets.keep` of the current config. */
  readonly mode: () => Config["secrets"]["keep"];
  readonly sealed: SealedSecrets | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly redactor: Redactor;
}

export interface SecuredEntry {
  readonly entry: JsonObject;
  /** Takes back what was put away for it. */
  undo(): Promise<void>;
}

/** Where they are kept in the keychain and in the store; other entries there are left alone. */
const FOLDER = "servers";

export class ServerSecrets {
  readonly #options: ServerSecretsOptions;

  constructor(options: ServerSecretsOptions) {
    this.#options = options;
  }

  /** Throws `invalid_arguments` that says where a plain secret is; from then on it is masked everywhere. */
  refusePlain(entry: JsonObject): void {
    this.#storable(entry);
  }

  /** The plain secrets of an entry, each of which can be put away. */
  #storable(entry: JsonObject): PlaintextCredential[] {
    const found = findPlaintextCredentials(entry);
    for (const { value } of found) this.#options.redactor.addCredential(value);
    if (found.length > 0 && this.#options.mode() === undefined) throw plainSecretError(found);
    const fixed = found.filter(({ replaceable }) => !replaceable);
    if (fixed.length > 0) throw plainSecretError(fixed);
    return found;
  }

  async secure(server: string, entry: JsonObject): Promise<SecuredEntry> {
    const plain = this.#storable(entry);
    const references = new Map<PlaintextCredential, string>();
    const put: string[] = [];
    const undo = async (): Promise<void> => {
      for (const reference of put) await this.#removeReference(reference);
    };
    try {
      for (const credential of plain) {
        const reference = await this.#put(secretName(server, credential.where), credential);
        put.push(reference);
        references.set(credential, reference);
      }
    } catch (error) {
      await undo();
      throw error;
    }
    const found = [...references.keys()];
    return { entry: replaceCredentials(entry, found, (each) => references.get(each) ?? ""), undo };
  }

  /** Removes what was put away for an entry, except what one of the texts still refers to. Never rejects. */
  async release(entry: JsonObject, stillUsed: string): Promise<void> {
    for (const reference of referencesIn(entry).filter(isOurs)) {
      if (!stillUsed.includes(`${reference.provider}/${reference.path}`)) await this.#removeReference(reference.text);
    }
  }

  async #put(name: string, { value, where }: PlaintextCredential): Promise<string> {
    const { mode, sealed, env } = this.#options;
    try {
      if (mode() === "keychain") {
        const slash = name.lastIndexOf("/");
        const service = `${KEYCHAIN_SERVICE}/${name.slice(0, slash)}`;
        const account = name.slice(slash + 1);
        await storeInKeychain({ service, account, value }, { env, signal: AbortSignal.timeout(KEYCHAIN_TIMEOUT_MS) });
        return writeReference("keychain", `${service}/${account}`);
      }
      if (sealed === undefined) throw new SecretFailure("this hub has no store to keep it in");
      await sealed.put(name, value);
      return writeReference("store", name);
    } catch (error) {
      if (!(error instanceof SecretFailure)) throw error;
      throw new ToolcribError("invalid_config", `The secret at ${where} cannot be kept: ${error.message}`, {
        hint: error.hint ?? "Use a reference such as secret://env/NAME instead.",
        details: { where: [where] },
      });
    }
  }

  async #removeReference(text: string): Promise<void> {
    const [reference] = findReferences(text);
    if (reference?.kind !== "secret" || !isOurs(reference)) return;
    const { path } = reference;
    const { sealed, env } = this.#options;
    const slash = path.lastIndexOf("/");
    // A secret that cannot be removed now does no harm: nothing refers to it.
    if (reference.provider === "store") await sealed?.remove(path).catch(() => false);
    else {
      const access = { env, signal: AbortSignal.timeout(KEYCHAIN_TIMEOUT_MS) };
      await removeFromKeychain({ service: path.slice(0, slash), account: path.slice(slash + 1) }, access).catch(
        () => {},
      );
    }
  }
}

function plainSecretError(found: readonly PlaintextCredential[]): ToolcribError {
  const where = found.map((each) => each.where);
  const message =
    where.length === 1
      ? `There is a plain secret at ${where[0]}; only references are stored.`
      : `There are plain secrets at ${where.join(", ")}; only references are stored.`;
  return new ToolcribError("invalid_arguments", message, {
    hint: 'Use a reference such as secret://env/NAME, or set `secrets.keep` of the config to "keychain" or "encrypted".',
    details: { where },
  });
}

function secretName(server: string, where: string): string {
  const plain = (text: string): string => text.replace(/[^A-Za-z0-9_.@-]+/g, "-").replace(/^[^A-Za-z0-9_]+/, "");
  return `${FOLDER}/${plain(server) || "server"}/${plain(where)}.${randomBytes(4).toString("hex")}`;
}

function isOurs({ provider, path }: SecretReference): boolean {
  if (provider === "store") return path.startsWith(`${FOLDER}/`);
  return provider === "keychain" && path.startsWith(`${KEYCHAIN_SERVICE}/${FOLDER}/`);
}

function referencesIn(value: unknown): SecretReference[] {
  if (typeof value === "string") return findReferences(value).filter((each) => each.kind === "secret");
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(referencesIn);
}
