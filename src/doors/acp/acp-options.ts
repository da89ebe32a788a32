/** The options of the ACP door. */
import type { Readable, Writable } from "node:stream";
import type { AgentMode } from "../../agent/agent-options.ts";
import type { ChatModel } from "../../agent/model/chat-model.ts";
import type { Hub } from "../../hub/hub.ts";
import type { ModelSetting } from "../../model/config.ts";

export interface AcpDoorOptions {
  readonly hub: Hub;
  readonly input: Readable;
  readonly output: Writable;
  /** The model of new sessions; `agent.model` of the config if absent. */
  readonly model?: ModelSetting | ChatModel | undefined;
  /** The mode of new sessions, and the laxest for loaded ones; `ask` for new ones if absent. */
  readonly mode?: AgentMode | undefined;
  /** Sessions see what this role sees. */
  readonly role?: string | undefined;
  /** Where the keys of models are looked up. */
  readonly env: NodeJS.ProcessEnv;
  /** Toolcrib's home, which no session can reach; the one that `env` names if absent. */
  readonly home?: string | undefined;
  /** Reloads the hub when its config changes, unless a session can write there. */
  readonly followConfig?: boolean | undefined;
  /** Of one message of the client; 64 MiB if absent. */
  readonly maxMessageBytes?: number | undefined;
  /** For the log; never the protocol's own stream. */
  log(message: string): void;
  /** Ends everything when it aborts. */
  readonly signal?: AbortSignal | undefined;
}
