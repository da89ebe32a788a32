/**
 * Secrets: looks references up when they are needed. What is costly to read is kept in memory for a bounded
 * time and read once, however many connections ask for it at the same moment. Every value goes to the redactor before
 * anyone else sees it.
 */
import { homedir } from "node:os";
import { join } from "node:path";
import { withAbort, withTimeout } from "../base/async.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { ToolcribError } from "../model/errors.ts";
import { isCredentialName } from "./credential-names.ts";
import { type ProviderContext, SecretFailure, type SecretProvider } from "./provider.ts";
import { awsProvider } from "./providers/aws.ts";
import { gcpProvider } from "./providers/gcp.ts";
import { keychainProvider } from "./providers/keychain.ts";
import { envProvider, execProvider, fileProvider, storeProvider, userProvider } from "./providers/local.ts";
import { vaultProvider } from "./providers/vault.ts";
import { Redactor } from "./redactor.ts";
import type { SealedSecrets } from "./sealed-secrets.ts";
import {
  parseReferences,
  type Part,
  type Reference,
  type SecretReference,
  type VariableReference,
} from "./secret-references.ts";

export interface SecretsOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Toolcrib's own folder; the one that `env` says if absent. */
  readonly home?: string;
  readonly clock?: Clock;
  readonly redactor?: Redactor;
  /** `secrets.exec` of the config. */
  readonly exec?: Readonly<Record<string, readonly string[]>>;
  /** `secrets.cacheSeconds` of the config. */
  readonly cacheSeconds?: number;
  /** The secrets behind `secret://store/…`; they may become available later. */
  readonly sealed?: () => SealedSecrets | undefined;
  /** Instead of the built-in ones. */
  readonly providers?: readonly SecretProvider[];
}

export interface LookUpOptions {
  /** The folder that relative paths start from; the working directory if absent. */
  readonly baseDir?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The user whose values `secret://user/…` are. */
  readonly user?: string | undefined;
  /** Variables that come before those of the hub. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Values that were read up to this mark are read again: see `mark`. */
  readonly newerThan?: number | undefined;
  readonly warn?: ((message: string) => void) | undefined;
}

export interface Resolved {
  readonly value: string;
  /** The references that were looked up. Defaults written in the file are not among them. */
  readonly looked: readonly { readonly reference: Reference; readonly value: string }[];
}

const DEFAULT_CACHE_SECONDS = 300;

export class Secrets {
  readonly env: NodeJS.ProcessEnv;
  readonly redactor: Redactor;
  readonly #home: string;
  readonly #clock: Clock;
  #commands: Readonly<Record<string, readonly string[]>>;
  #cacheMs: number;
  readonly #sealed: () => SealedSecrets | undefined;
  readonly #providers: ReadonlyMap<string, SecretProvider>;
  /** In progress, and those done whose value is kept. */
  readonly #lookups = new Map<string, SecretLookup>();
  #started = 0;

  constructor(options: SecretsOptions) {
    this.env = options.env;
    this.redactor = options.redactor ?? new Redactor();
    this.#home = options.home ?? (this.env["TOOLCRIB_HOME"] || join(this.env["HOME"] || homedir(), ".toolcrib"));
    this.#clock = options.clock ?? systemClock;
    this.#commands = options.exec ?? {};
    this.#cacheMs = (options.cacheSeconds ?? DEFAULT_CACHE_SECONDS) * 1000;
    this.#sealed = options.sealed ?? (() => undefined);
    const providers = options.providers ?? allProviders(this.#sealed);
    this.#providers = new Map(providers.map((provider) => [provider.name, provider]));
  }

  /** Secrets in the hub's store; undefined if it has none. */
  get sealed(): SealedSecrets | undefined {
    return this.#sealed();
  }

  /** The look-ups begun so far. Given as `newerThan` later, it leaves out every value that is known now. */
  get mark(): number {
    return this.#started;
  }

  /** Other commands or another time to keep values, from the next look-up on. */
  configure({ exec = {}, cacheSeconds = DEFAULT_CACHE_SECONDS }: Pick<SecretsOptions, "exec" | "cacheSeconds">): void {
    this.#commands = exec;
    this.#cacheMs = cacheSeconds * 1000;
    this.forget();
    this.#sealed()?.forgetKey();
  }

  /** Drops every value that is kept, so that the next look-up reads it again. */
  forget(): void {
    this.#lookups.clear();
  }

  /**
   * Resolves every reference of a text, all at once, or throws an error that names the reference and never a value.
   *
   * `await secrets.resolve("Bearer ${TOKEN}")` returns `{ value: "Bearer t", … }`.
   */
  async resolve(text: string, options: LookUpOptions = {}): Promise<Resolved> {
    const parts = parseReferences(text);
    const found = await Promise.all(parts.map((part) => this.#part(part, options)));
    const looked = parts.flatMap((part, index) => {
      const value = found[index];
      return typeof part === "string" || value === undefined ? [] : [{ reference: part, value }];
    });
    const value = parts.map((part, index) => found[index] ?? fallbackOf(part)).join("");
    return { value, looked };
  }

  /** The value; undefined where the default of the file counts. */
  async #part(part: Part, options: LookUpOptions): Promise<string | undefined> {
    if (typeof part === "string") return part;
    return part.kind === "variable" ? this.#variable(part, options) : this.#secret(part, options);
  }

  #variable(reference: VariableReference, { env }: LookUpOptions): string | undefined {
    const own = this.#given(reference.name, env);
    const value = own ?? this.env[reference.name];
    // Like a shell: `:-` counts an empty variable as unset, plain `${VAR}` does not.
    if (reference.fallback !== undefined && (value === undefined || value === "")) return undefined;
    if (value !== undefined) {
      if (isCredentialName(reference.name)) this.redactor.addCredential(value);
      return value;
    }
    throw lookupError(
      reference,
      new SecretFailure("is not set", { hint: `Set ${reference.name} in the environment that Toolcrib runs in.` }),
    );
  }

  #given(name: string, env: LookUpOptions["env"]): string | undefined {
    const value = env !== undefined && Object.hasOwn(env, name) ? env[name] : undefined;
    if (value !== undefined) this.redactor.addCredential(value);
    return value;
  }

  async #secret(secret: SecretReference, options: LookUpOptions): Promise<string> {
    const given = secret.provider === "env" ? this.#given(secret.path, options.env) : undefined;
    if (given !== undefined) return given;
    const provider = this.#providers.get(secret.provider);
    if (provider === undefined) throw lookupError(secret, new SecretFailure("names a provider that is not here"));
    try {
      const value = await this.#lookup(provider, secret, options).join(options.signal);
      // An earlier one may have been forgotten by the redactor's owner; adding it again costs nothing.
      this.redactor.addCredential(value);
      return value;
    } catch (error) {
      if (error instanceof ToolcribError) throw error;
      throw lookupError(secret, this.#masked(error));
    }
  }

  #lookup(provider: SecretProvider, secret: SecretReference, options: LookUpOptions): SecretLookup {
    if (!provider.cached) return this.#start(provider, secret, options);
    // A command runs in the folder of its config, so the same words may mean another secret elsewhere.
    const key = JSON.stringify([provider.name, secret.path, secret.field ?? null, options.baseDir ?? null]);
    const known = this.#lookups.get(key);
    if (known !== undefined && !known.isAbandoned && known.number > (options.newerThan ?? 0)) return known;
    const lookup = this.#start(provider, secret, options);
    this.#lookups.set(key, lookup);
    const drop = (): void => {
      if (this.#lookups.get(key) === lookup) this.#lookups.delete(key);
    };
    // A failure is never kept.
    lookup.value.then(() => (this.#cacheMs > 0 ? void this.#clock.after(this.#cacheMs, drop) : drop()), drop);
    return lookup;
  }

  #start(provider: SecretProvider, secret: SecretReference, options: LookUpOptions): SecretLookup {
    const context: Omit<ProviderContext, "signal"> = {
      env: this.env,
      clock: this.#clock,
      home: this.#home,
      baseDir: options.baseDir ?? process.cwd(),
      user: options.user,
      commands: this.#commands,
      conceal: (value) => this.redactor.addCredential(value),
      warn: options.warn ?? (() => {}),
    };
    return new SecretLookup(++this.#started, this.#clock, (signal) => provider.resolve(secret, { ...context, signal }));
  }

  /** The message of a provider may quote a program or a server. */
  #masked(error: unknown): SecretFailure {
    const failure =
      error instanceof SecretFailure
        ? error
        : new SecretFailure(`could not be looked up: ${firstLine(error)}`, { cause: error });
    const { message, hint, passing } = failure;
    const masked = hint === undefined ? undefined : this.redactor.mask(hint);
    return new SecretFailure(this.redactor.mask(message), { hint: masked, passing, cause: failure });
  }
}

/** `server_unavailable` where waiting may help, so that the connection tries again; `invalid_config` where it does not. */
function lookupError(reference: Reference, failure: SecretFailure): ToolcribError {
  return new ToolcribError(
    failure.passing ? "server_unavailable" : "invalid_config",
    `${reference.text} ${failure.message}`,
    {
      hint: failure.hint,
      details: { reference: reference.text, sent: false },
      cause: failure,
    },
  );
}

function fallbackOf(part: Part): string {
  return typeof part !== "string" && part.kind === "variable" ? (part.fallback ?? "") : "";
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n", 1)[0]?.slice(0, 200) ?? "";
}

/** How long a provider may take. */
const MAX_LOOKUP_MS = 10_000;

/** One look-up that several connections may wait for; ended when the last of them gives up. */
class SecretLookup {
  /** Counts all look-ups of a Secrets, so that an older value is distinguished from a newer one. */
  readonly number: number;
  readonly value: Promise<string>;
  readonly #controller = new AbortController();
  #waiting = 0;
  #settled = false;

  constructor(number: number, clock: Clock, run: (signal: AbortSignal) => Promise<string>) {
    this.number = number;
    const { signal } = this.#controller;
    // Starts a turn later, so that a provider that throws at once fails like the others.
    const work = Promise.resolve()
      .then(() => run(signal))
      .finally(() => (this.#settled = true));
    // Not left to the provider: one that ignores the signal must not hold up a connection.
    const abortable = withAbort(work, signal, () => new SecretFailure("was given up", { passing: true }));
    const late = (): SecretFailure => {
      this.#controller.abort();
      return new SecretFailure(`was not given within ${MAX_LOOKUP_MS / 1000} s`, { passing: true });
    };
    this.value = withTimeout(abortable, { ms: MAX_LOOKUP_MS, clock, late });
    // Everyone who waits gets the failure; without anyone waiting it is not an unhandled one.
    this.value.catch(() => {});
  }

  /** No longer worth joining. */
  get isAbandoned(): boolean {
    return this.#controller.signal.aborted;
  }

  async join(signal: AbortSignal | undefined): Promise<string> {
    if (signal?.aborted === true) throw cancelledError();
    this.#waiting++;
    if (signal === undefined) return this.value;
    return withAbort(this.value, signal, () => {
      this.#waiting--;
      if (this.#waiting === 0 && !this.#settled) this.#controller.abort();
      return cancelledError();
    });
  }
}

function cancelledError(): ToolcribError {
  return new ToolcribError("cancelled", "Looking up a secret was cancelled.");
}

function allProviders(sealed: () => SealedSecrets | undefined): SecretProvider[] {
  return [
    envProvider,
    fileProvider,
    vaultProvider(),
    awsProvider(),
    gcpProvider(),
    keychainProvider(),
    execProvider,
    userProvider,
    storeProvider(sealed),
  ];
}

/** Looks nothing up: for clients that must not read this machine's environment by naming it. `$${` is `${`, as everywhere. */
export class LiteralSecrets extends Secrets {
  override resolve(text: string): Promise<Resolved> {
    return Promise.resolve({ value: text.replaceAll("$${", "${"), looked: [] });
  }
}
