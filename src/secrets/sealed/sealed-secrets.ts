/** Secrets that are kept in the store, which never sees their text. */
import type { Clock } from "../../model/clock.ts";
import { SecretFailure } from "../provider.ts";
import { keyIdOf, seal, type Sealed, unseal } from "./seal.ts";
import type { SealingKey } from "./sealing-key.ts";

export interface SealedEntry extends Sealed {
  readonly name: string;
  readonly keyId: string;
  readonly updatedAt: string;
}

/** Where sealed values lie. */
export interface SealedShelf {
  get(name: string): Promise<SealedEntry | undefined>;
  put(value: SealedEntry): Promise<void>;
  remove(name: string): Promise<boolean>;
}

export interface SealedSecretsOptions {
  readonly shelf: SealedShelf;
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
    const { shelf, key, clock } = this.#options;
    this.#key ??= await key.made();
    const updatedAt = new Date(clock.now()).toISOString();
    await shelf.put({ name, ...seal(name, text, this.#key), keyId: keyIdOf(this.#key), updatedAt });
  }

  /** Throws SecretFailure where there is none, or where it cannot be opened. */
  async get(name: string): Promise<string> {
    const { shelf, key } = this.#options;
    const entry = await shelf.get(name);
    if (entry === undefined) {
      throw new SecretFailure("is not in the store", { hint: `toolcrib secrets set store/${name} stores it.` });
    }
    this.#key ??= await key.existing();
    if (this.#key === undefined) {
      throw new SecretFailure("cannot be opened: the key file of the store is gone", {
        hint: "Bring back store.key, or set `secrets.key`.",
      });
    }
    if (entry.keyId !== keyIdOf(this.#key)) {
      throw new SecretFailure("was sealed with another key than the one in use", {
        hint: "Set `secrets.key`, or bring back store.key, as it was then; or store the secret anew.",
      });
    }
    const text = unseal(name, entry, this.#key);
    if (text === undefined) {
      throw new SecretFailure("cannot be opened: what the store holds was changed or damaged", {
        hint: "Store the secret anew.",
      });
    }
    return text;
  }

  /** The next use reads the key again: the config may name another one. */
  forgetKey(): void {
    this.#key = undefined;
  }

  remove(name: string): Promise<boolean> {
    return this.#options.shelf.remove(name);
  }
}
