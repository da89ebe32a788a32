/** An agent client: where its MCP configuration and its skills are, what stands in them, and what is written there. */
import type { PathStep, TextEditor } from "../files/edit/text-editor.ts";
import type { JsonObject } from "../model/json.ts";

export const CLIENT_IDS = [
  "claude-desktop",
  "claude-code",
  "cursor",
  "vscode",
  "windsurf",
  "cline",
  "zed",
  "codex",
  "gemini-cli",
  "opencode",
  "kiro",
  "junie",
  "goose",
  "lm-studio",
  "amp",
  "continue",
  "openclaw",
  "copilot-cli",
] as const;

export type ClientId = (typeof CLIENT_IDS)[number];

/** For all of a person's work, or for one project folder. */
export type ClientScope = "user" | "project";

/** The machine as the paths need it; a made-up one in tests. */
export interface ClientEnvironment {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly projectDir: string;
}

export interface ClientFile {
  readonly scope: ClientScope;
  readonly path: string;
  /** For a file of the user that keeps servers of single projects: the project's key in it. */
  readonly projectKey?: string;
}

/** What to write: a command, or an address. Headers and env hold no secrets. */
export type WrittenServer =
  | {
      readonly command: string;
      readonly args: readonly string[];
      readonly env?: Readonly<Record<string, string>>;
      readonly cwd?: string;
    }
  | {
      readonly url: string;
      readonly transport: "http" | "sse";
      readonly headers?: Readonly<Record<string, string>>;
    };

export interface ClientProblem {
  readonly path: readonly (string | number)[];
  /** Names keys, ids and variables, never a value: those may be secrets. */
  readonly message: string;
}

export interface ClientRead {
  readonly servers: Record<string, JsonObject>;
  readonly problems: readonly ClientProblem[];
}

export interface AgentClient {
  readonly id: ClientId;
  readonly name: string;
  readonly format: TextEditor["format"];
  /** Every file that may hold servers; for each scope the one to write comes first. */
  files(place: ClientEnvironment): readonly ClientFile[];
  /** Paths of which one there means that the client is installed. */
  traces(place: ClientEnvironment): readonly string[];
  /** Where the entry of a server stands in the document of a file. */
  pathOf(serverId: string, file: ClientFile): readonly PathStep[];
  /**
   * The servers as entries in the words that `import` understands (command, args, env, cwd, url, headers, type,
   * disabled …), with the client's own references written as `${NAME}`. Must not throw: what is no server is left out
   * and told among the problems. An entry with a problem may still be there, if it works without what is missing.
   */
  read(document: unknown, file: ClientFile): ClientRead;
  /** undefined if the client has no way to say that: an address in Claude Desktop, a working directory in many. */
  write(serverId: string, server: WrittenServer): JsonObject | undefined;
  /** The client's own way to take a value of env or headers from the environment, if it has one: `${env:NAME}`. */
  readonly envReference?: (name: string) => string;
  /** Folders that the client reads skills from, if any; the first is written. */
  skillDirs(place: ClientEnvironment, scope: ClientScope): readonly string[];
  /** What a person must do so that a change counts: "Restart Cursor." */
  readonly afterChange: string;
  /** What a file must hold besides servers; a file that is made begins with it. */
  readonly newFile?: string;
}
