/** An agent client: where its MCP config and its skills are, and how server entries are read and written. */
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
  "qwen-code",
  "kilo",
  "droid",
  "kimi",
  "pi",
  "grok",
] as const;

export type ClientId = (typeof CLIENT_IDS)[number];

export function isClientId(text: string): text is ClientId {
  return CLIENT_IDS.some((id) => id === text);
}

/** For all projects of a user, or for one project folder. */
export type ClientScope = "user" | "project";

/** The part of the machine that paths depend on. */
export interface ClientEnvironment {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly projectDir: string;
}

export interface ClientFile {
  readonly scope: ClientScope;
  readonly path: string;
  /** For a user file with servers of single projects: the project's key in it. */
  readonly projectKey?: string;
}

/** A server to write: a command or a URL. Headers and env contain no secrets. */
export type WrittenServer =
  | {
      readonly command: string;
      readonly args: readonly string[];
      readonly env?: Readonly<Record<string, string>>;
      readonly cwd?: string;
      /** Variables of the user that it needs, for clients that pass on only a part of their environment. */
      readonly envNames?: readonly string[];
      /** It is Toolcrib, which may have to start the hub first: a client that begins without slow servers is to wait for it. */
      readonly startsHub?: boolean;
    }
  | {
      readonly url: string;
      readonly transport: "http" | "sse";
      readonly headers?: Readonly<Record<string, string>>;
      /** The bearer token: the variable in which the client finds it, or the text that the user entered for this file. */
      readonly token?: { readonly env: string } | { readonly text: string };
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
  files(machine: ClientEnvironment): readonly ClientFile[];
  /** The client is installed if one of these paths exists. */
  traces(machine: ClientEnvironment): readonly string[];
  /** The path of a server's entry in the document. */
  pathOf(serverId: string, file: ClientFile): readonly PathStep[];
  /**
   * The servers as entries that `import` understands (command, args, env, cwd, url, headers, type, disabled …), with the
   * client's own references written as `${NAME}`. Must not throw: an invalid entry is skipped and reported as a problem. An
   * entry with a problem may still be returned, if it works without the missing part.
   */
  read(document: unknown, file: ClientFile): ClientRead;
  /** Undefined if the client cannot express it, such as a URL in Claude Desktop, or a working directory in many. */
  write(serverId: string, server: WrittenServer): JsonObject | undefined;
  /** Matches the name that the client gives itself (`clientInfo.name`). For display: anyone can use any name. */
  readonly saysName: RegExp;
  /** The form of tool names that a model sees; absent where the client adds nothing, shortens names itself, or that is not known. */
  readonly toolNames?: {
    /** @param entry The name of the server in the client's config. */
    prefix(entry: string): string;
    /** Stands for `__` in names, for a client that takes that for the end of its own prefix. */
    readonly separator?: string;
  };
  /** The key that names the variable of a bearer token, if the client has one. */
  readonly bearerVariable?: string;
  /** The client starts servers with only a part of its environment. */
  readonly reducesEnvironment?: true;
  /** The client's syntax for environment variables in env and headers, if it has one, such as `${env:NAME}`. */
  readonly envReference?: (name: string) => string;
  /** Folders that the client reads skills from, if any. Skills are written to the first. */
  skillDirs(machine: ClientEnvironment, scope: ClientScope): readonly string[];
  /** The step that applies a change, such as "Restart Cursor." */
  readonly afterChange: string;
  /** Required content besides servers; a new file begins with it. */
  readonly newFile?: string;
}

/** The id of a client that cannot take public names, for its entry: it may call itself otherwise in its next version. */
export function namedInEntry({ id, toolNames }: Pick<AgentClient, "id" | "toolNames">): ClientId | undefined {
  return toolNames?.separator === undefined ? undefined : id;
}
