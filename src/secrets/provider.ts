/** What a secret provider is: one place that secrets are kept in, behind one function. */
import type { Clock } from "../model/clock.ts";
import type { SecretReference } from "./references.ts";

export interface SecretProvider {
  readonly name: string;
  /** Whether values are kept for a while. Not for what costs nothing to read and is always up to date. */
  readonly cached: boolean;
  /** Gives the value, never an empty one, or throws SecretFailure. Must end soon after `signal` aborts. */
  resolve(secret: SecretReference, context: ProviderContext): Promise<string>;
}

export interface ProviderContext {
  readonly signal: AbortSignal;
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  /** Toolcrib's own folder. */
  readonly home: string;
  /** The folder that relative paths start from. */
  readonly baseDir: string;
  /** Whose connection it is, where it is somebody's. */
  readonly user: string | undefined;
  /** The programs that `secrets.exec` of the config names. */
  readonly commands: Readonly<Record<string, readonly string[]>>;
  /** Takes a credential of the provider itself, such as a Vault token, so that it is masked everywhere. */
  readonly conceal: (value: string) => void;
  /** Takes what is unwise and works all the same. */
  readonly warn: (message: string) => void;
}

interface FailureOptions {
  readonly hint?: string;
  /** Whether waiting can help: a server that is down, not a secret that is not there. */
  readonly passing?: boolean;
  readonly cause?: unknown;
}

/** Why a secret was not found. The message follows the reference in a sentence and never holds a value. */
export class SecretFailure extends Error {
  override readonly name = "SecretFailure";
  readonly hint: string | undefined;
  readonly passing: boolean;

  constructor(message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.hint = options.hint;
    this.passing = options.passing ?? false;
  }
}
