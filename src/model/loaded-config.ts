/** A config as it was loaded: the settings, the servers of all its layers, and what there is to say about them. */
import type { Config } from "./config.ts";
import type { ToolcribError } from "./errors.ts";
import type { JsonObject } from "./json.ts";
import type { ServerSpec } from "./server-spec.ts";
import type { ToolRules } from "./tool-rules.ts";

export interface LoadedConfig {
  /** Defaults filled in. `mcpServers` has the servers of the file itself; `servers` has all. */
  readonly config: Config;
  /** null for a config given in code, and if no file was found. Never the project's. */
  readonly file: string | null;
  /** Where relative paths of the config start. */
  readonly baseDir: string;
  /** Those of the file, of its imports and of the home's etc/mcp-servers.json. Strings keep their references. */
  readonly servers: ServerSpec[];
  readonly warnings: Diagnostic[];
  /** Problems in entries of the file, by the id of the server, which is not started. */
  readonly unusable?: ReadonlyMap<string, readonly Diagnostic[]>;
  /** Absolute paths of everything it was read from, also of imports that are missing: they may come. */
  readonly files: readonly string[];
  /** True if it was given in code and so cannot be loaded again. */
  readonly inCode: boolean;
  /** Where it was found, if no file was named. */
  readonly searched?: Searched;
  /** The trusted project config that was added. */
  readonly project?: ProjectLayer;
  /** Further files that affect it: a project config that was left out, and the file with the trust records. */
  readonly watched?: readonly string[];
}

/** The files of a config that was searched for; null for one that was not there. */
export interface Searched {
  readonly home: string | null;
  readonly project: string | null;
}

/** A project config as it was read, with everything that belongs to it. */
export interface ProjectReading extends TrustSubject {
  readonly file: string;
  /** Every file of it, by path; null for one that is not there. */
  readonly texts: ReadonlyMap<string, string | null>;
  readonly value: unknown;
  /** By itself; undefined if it cannot be used, and `failure` says why. */
  readonly loaded: LoadedConfig | undefined;
  readonly failure: ToolcribError | undefined;
}

/** The project config that was added to the hub's own. */
interface ProjectLayer {
  readonly file: string;
  /** One more level of rules, which can only narrow. */
  readonly rules: ToolRules;
  /** Roles that only the project has. */
  readonly roles: readonly string[];
  readonly reading: ProjectReading;
}

/** A config as it was read: what a person is asked about, and what is then used. */
export interface TrustSubject {
  /** Of everything but the rules that only narrow. */
  readonly digest: string;
  readonly rules: JsonObject;
}

/** Something wrong or odd in a config, and exactly where. */
export interface Diagnostic {
  readonly severity: "error" | "warning";
  /** A stable word for programs: `unknown_key`, `wrong_value`, `plain_credential`, … */
  readonly code: string;
  /** A file path; `library` for a config given in code, `environment` for variables. */
  readonly file: string;
  /** From 1; 0 where there is no text to point into. */
  readonly line: number;
  readonly column: number;
  /** Such as `mcpServers.files.args[0]`; empty for the whole file. */
  readonly path: string;
  /** Says what was found and what is allowed. Never contains a value that may be a secret. */
  readonly message: string;
  readonly hint?: string;
}
