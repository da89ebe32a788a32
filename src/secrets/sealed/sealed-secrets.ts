/** Secrets that are kept in the store, which never sees their text. */
import type { Clock } from "../../model/clock.ts";
import { SecretFailure } from "../provider.ts";
import { keyIdOf, seal, type Sealed, unseal } from "./seal.ts";
import type { SealingKey } from "./sealing-key.ts";

/** A sealed text, and which key it needs. */
export interface SealedText extends Sealed {
  readonly keyId: string;
}

export interface SealedEntry extends SealedText {
  readonly name: string;
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
    const { shelf, clock } = this.#options;
    const sealed = await this.seal(name, text);
    await shelf.put({ name, ...sealed, updatedAt: new Date(clock.now()).toISOString() });
  }

  /** For a text that is kept elsewhere than on the shelf. */
  async seal(name: string, text: string): Promise<SealedText> {
    this.#key ??= await this.#options.key.made();
    return { ...seal(name, text, this.#key), keyId: keyIdOf(this.#key) };
  }

  /** Throws SecretFailure where there is none, or where it cannot be opened. */
  async get(name: string): Promise<string> {
    const entry = await this.#options.shelf.get(name);
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
