/** The types of the command table, and of what a handler gets. */
import type { Hub } from "../hub/hub.ts";
import { type ErrorCode, ERROR_TABLE, ToolcribError } from "../model/errors.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { Output, Sink } from "./output.ts";

export interface OptionEntry {
  /** As commander writes it: `--args <json>`. */
  readonly flags: string;
  readonly summary: string;
  /** `list`: may be repeated. `milliseconds`: a positive whole number. */
  readonly kind?: "list" | "milliseconds";
}

export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  /** As commander writes them: `<id>`, `[server]`, `[arguments...]`. */
  readonly arguments: readonly ArgumentEntry[];
  readonly options: readonly OptionEntry[];
  /** Lines under the help. */
  readonly examples?: readonly string[];
  /** Runs at the hub that serves the same config, if there is one. */
  readonly attaches?: boolean;
  /** Handlers are loaded when they run, so that `--help` stays fast. */
  readonly load: () => Promise<CommandHandler>;
}

export interface ArgumentEntry {
  readonly syntax: string;
  readonly summary: string;
}

/** Resolves with the exit code. Throws ToolcribError for everything that the user should see. */
export type CommandHandler = (invocation: Invocation) => Promise<number>;

/** The environment of a command; tests pass their own. */
export interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly stdin: NodeJS.ReadStream;
}

/** The hub that a command runs at. */
export interface AttachedHub {
  readonly hub: Hub;
  /** The process of the command has ended. */
  readonly signal: AbortSignal;
}

/** The surroundings of a whole command line. */
export interface Terminal extends Surroundings {
  readonly stdout: Sink;
  readonly stderr: Sink;
  /** The hub that it runs at. */
  readonly attached?: AttachedHub;
  /** Knows the secrets of the command, for messages after it has ended. */
  readonly redactor?: Redactor;
}

export interface Invocation extends Surroundings {
  readonly attached?: AttachedHub | undefined;
  /** For a command that runs others, such as a hub does for commands of other processes. */
  readonly runCommandLine: (argv: readonly string[], terminal: Terminal) => Promise<number>;
  /** Positional arguments; a variadic one is spread at the end. */
  readonly args: readonly string[];
  /** Whether the arguments contain `--`; `add` needs to know. */
  readonly dashes: boolean;
  readonly flags: Flags;
  readonly out: Output;
}

/** Typed access to what commander parsed. */
export class Flags {
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(values: Readonly<Record<string, unknown>>) {
    this.#values = values;
  }

  has(name: string): boolean {
    return this.#values[name] === true;
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === "string" ? value : undefined;
  }

  number(name: string): number | undefined {
    const value = this.#values[name];
    return typeof value === "number" ? value : undefined;
  }

  list(name: string): readonly string[] {
    const value = this.#values[name];
    return Array.isArray(value) ? value.map(String) : [];
  }
}

export function exitCodeOf(code: ErrorCode): number {
  return ERROR_TABLE[code].exit;
}

/** For a subcommand that does not exist. */
export function unknownAction(command: string, action: string, hint: string): ToolcribError {
  return new ToolcribError("invalid_arguments", `There is no command "toolcrib ${command} ${action}".`, { hint });
}
