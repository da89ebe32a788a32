/** Cage: what a server's program runs in, so that it has less than the user's own rights. */
import type { ToolcribError } from "../../model/errors.ts";
import type { CageKind, ContainersConfig } from "../../model/sandbox.ts";

export interface Cage {
  /**
   * What takes long and is needed once, such as making an image. It has a bound of its own and is not part of the time
   * that connecting may take; `prepare` finds it done.
   */
  makeReady?(program: CagedProgram, signal: AbortSignal): Promise<void>;
  /** Turns the program into one that runs inside. Leaves nothing behind when it rejects. */
  prepare(program: CagedProgram, signal: AbortSignal): Promise<CagedLaunch>;
}

/** A program as it would be started without a cage. */
export interface CagedProgram {
  readonly serverId: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Complete: the minimal environment and what the spec names. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  /** The folder that relative paths of the spec start from. */
  readonly baseDir: string;
}

/** What is started instead. */
export interface CagedLaunch {
  readonly command: string;
  readonly args: readonly string[];
  /** Of the launcher; the program's own goes in by other ways. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Extra pipes: descriptors 3 and up get these bytes and are closed. */
  readonly fds?: readonly Uint8Array[];
  /** Descriptors of the hub that it would inherit and must not: it finds /dev/null there. */
  readonly withheld?: readonly number[];
  /** A better reason for the end of a run than its exit code; must not throw. */
  explain?(end: RunEnd): ToolcribError | undefined;
  /** How its end is asked for, before signals to the process group; `pid` is the launcher's. Never rejects. */
  stop?(pid: number): Promise<void>;
  /** After the process has gone, whatever the reason. Never rejects. */
  cleanUp?(): Promise<void>;
}

/** How one run ended by itself. */
export interface RunEnd {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The last lines of its stderr. */
  readonly stderr: string;
  /** Whether it ever sent a message. */
  readonly heard: boolean;
}

/** A `sandbox` entry, complete and with absolute paths. */
export interface CageSettings {
  readonly kind: CageKind;
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** The only folder whose files a `cwd` lets in, null for none; any where the operator described the server. */
  readonly ownFolder?: string | null;
  readonly network: "none" | "host";
  /** Bytes. */
  readonly memory?: number;
  readonly cpus?: number;
  readonly pids?: number;
  /** Milliseconds that one run may last. */
  readonly timeout?: number;
  readonly image?: string;
  readonly port?: number;
  readonly path?: string;
}

export interface CageDeps {
  /** Toolcrib's own folder, which no cage may see: it holds secrets. */
  readonly home: string;
  /** The hub's environment, in which programs are looked up. */
  readonly env: NodeJS.ProcessEnv;
  readonly containers: ContainersConfig;
  warn(message: string): void;
}
