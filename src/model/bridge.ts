/** How a bridge introduces its client to a hub: `toolcrib mcp` asks for an upgrade of its connection at `/bridge`. */
export const BRIDGE_PATH = "/bridge";
export const BRIDGE_PROTOCOL = "toolcrib-bridge";
/** Has the hello as base64url of JSON. */
export const HELLO_HEADER = "x-toolcrib-hello";

/** Of the response that opens a bridge: what a person should know of it, as base64url. */
export const WARNING_HEADER = "x-toolcrib-warning";

/** Of responses: the version of the hub. */
export const VERSION_HEADER = "x-toolcrib-version";

export interface BridgeHello {
  /** Of Toolcrib on the client's side. */
  readonly version: string;
  readonly role?: string | undefined;
  readonly view?: string | undefined;
  /** Serves only this server. */
  readonly server?: string | undefined;
  /** The session of an editor that the client joins. */
  readonly session?: string | undefined;
  /** The id of the client that `connect` wrote its command for. */
  readonly client?: string | undefined;
  /** Of the bridge. */
  readonly pid?: number | undefined;
  /** The program that started it, where the system says. */
  readonly program?: string | undefined;
  readonly cwd?: string | undefined;
  /** The same for as long as the bridge runs: what its client has read is known to the next hub as well. */
  readonly conversation?: string | undefined;
  /** The program file of the bridge: of a newer version it takes the hub's place. */
  readonly entry?: string | undefined;
  /** Variables that `hub.clientEnv` names. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}
