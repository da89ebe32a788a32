/** What a session brings along and nobody else sees: servers and tools. */
import type { ServerInfo } from "../../model/server-state.ts";
import type { Tool } from "../../model/tool.ts";

/** Entries by name, or a list as ACP has it, in the words of any dialect. A wrong entry is left out with a notice. */
export type SessionServers = Readonly<Record<string, unknown>> | readonly unknown[];

/** Something that the client and the model should know: a server that failed, an entry that was left out, a name that is taken. */
export interface SessionNotice {
  readonly level: "info" | "warning";
  readonly message: string;
  readonly hint?: string;
  /** As the client named it. */
  readonly server?: string;
}

/** An entry of the last `mount` that is no server of the session. */
export interface LeftOutServer {
  /** As the client named it. */
  readonly name: string;
  /** In Toolcrib's own words alone, for a model; a notice says more. */
  readonly reason: string;
}

export interface OwnEvents {
  notice: SessionNotice;
  /** One of its servers changed its state. */
  server: ServerInfo;
  /** Its tools, resources or prompts are other than before. */
  change: Readonly<Record<string, never>>;
  /** A resource that the session follows at one of its servers was updated. */
  resource: { readonly uri: string };
}

export interface MountOptions {
  /** Milliseconds to wait for servers; the config's `sessions.wait` if absent. */
  readonly waitMs?: number;
}

export interface OwnParts {
  /**
   * Makes these the session's servers: new ones are connected, those that are the same stay as they are, others end. Resolves
   * when all are ready or have failed, or after the wait; who is late joins then. What cannot be used is left out with a
   * notice. Rejects only with `cancelled`, when the session is closed.
   */
  mount(servers: SessionServers, options?: MountOptions): Promise<void>;
  /** Replaces the tools of one group, such as those of one process; an empty list clears it. */
  setTools(group: string, tools: readonly Tool[]): void;
  /** `id` is unique in the hub, `name` is as the client named it. */
  servers(): readonly ServerInfo[];
  /** Those that should be there and are not. */
  leftOut(): readonly LeftOutServer[];
  /** What has been said so far, oldest first, bounded. */
  notices(): readonly SessionNotice[];
  /** Resolves when no server is connecting for the first time any more. */
  settled(): Promise<void>;
  on<Name extends keyof OwnEvents>(name: Name, listener: (event: OwnEvents[Name]) => void): () => void;
}
