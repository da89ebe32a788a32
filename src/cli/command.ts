/** The types of the command table, and of what a handler gets. */
import type { Hub } from "../hub/hub.ts";
import type { Caller, Scope } from "../model/caller.ts";
import type { ClientInfo } from "../model/client-info.ts";
import { type ErrorCode, ERROR_TABLE, ToolcribError } from "../model/errors.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { Session } from "../sessions/session.ts";
import type { Output, Sink } from "./output.ts";

export interface OptionEntry {
  /** As commander writes it: `--args <json>`. */
  readonly flags: string;
  readonly summary: string;
  /** `list`: may be repeated. `milliseconds`: a positive whole number. */
  readonly kind?: "list" | "milliseconds";
}

/** How `--help` arranges the commands. */
export const COMMAND_GROUPS = ["Use tools", "Servers", "Clients", "Skills", "Guard", "Operate"] as const;

export interface CommandEntry {
  readonly name: string;
  readonly group: (typeof COMMAND_GROUPS)[number];
  readonly summary: string;
  /** As commander writes them: `<id>`, `[server]`, `[arguments...]`. */
  readonly arguments: readonly ArgumentEntry[];
  readonly options: readonly OptionEntry[];
  /** Lines under the help. */
  readonly examples?: readonly string[];
  /**
   * The scope that it needs to run at a hub: the one that serves the same config, or that of `--hub`. Undefined for arguments
   * that use this machine instead.
   */
  readonly atHub?: Scope | ((args: readonly string[]) => Scope | undefined);
  /** Handlers are loaded when they run, so that `--help` stays fast. */
  readonly load: () => Promise<CommandHandler>;
}

export interface ArgumentEntry {
  readonly syntax: string;
  readonly summary: string;
  /** All that it may be; for the completion of a shell. */
  readonly values?: readonly string[];
  /** The kind of names that it may be; for the completion of a shell. */
  readonly names?: "tool" | "prompt" | "resource" | "server" | "client" | "skill";
}

/** Resolves with the exit code. Throws ToolcribError for everything that the user should see. */
export type CommandHandler = (invocation: Invocation) => Promise<number>;

/** The environment of a command; tests pass their own. */
export interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly stdin: NodeJS.ReadStream;
}

/** The hub that a command runs at, and on whose behalf. */
export interface AttachedHub {
  readonly hub: Hub;
  readonly caller: Caller;
  /** The process of the command. */
  readonly peer: Omit<ClientInfo, "name" | "version">;
  /** The caller's session between commands: what one command has read counts in the next. */
  readonly parent?: () => Session;
  /** That process has ended. */
  readonly signal: AbortSignal;
  /** The files of a command on another machine are there, not here. */
  readonly files?: RemoteFiles;
}

export interface RemoteFiles {
  /** Undefined if it was not sent along. */
  read(path: string): Buffer | undefined;
  /** Sends content for `--out`. */
  save(parts: readonly SavedPart[]): void;
}

/** Content for a file. */
export interface SavedPart {
  readonly bytes: Buffer;
  readonly mimeType: string;
  /** A name without extension for a part that goes into a folder. */
  readonly name: string;
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

/** Those of a text with commas. */
export function splitNames(text = ""): string[] {
  return text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

export function exitCodeOf(code: ErrorCode): number {
  return ERROR_TABLE[code].exit;
}

/** For a subcommand that does not exist. */
export function unknownAction(command: string, action: string, hint: string): ToolcribError {
  return new ToolcribError("invalid_arguments", `There is no command "toolcrib ${command} ${action}".`, { hint });
}
