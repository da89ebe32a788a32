/** How a bridge introduces its client to a hub: `toolcrib mcp` asks for an upgrade of its connection at `/bridge`. */
export const BRIDGE_PATH = "/bridge";
export const BRIDGE_PROTOCOL = "toolcrib-bridge";
/** Has the hello as base64url of JSON. */
export const HELLO_HEADER = "x-toolcrib-hello";

/** Of the response that opens a bridge: what a person should know of it, as base64url. */
export const WARNING_HEADER = "x-toolcrib-warning";

/** Of responses: the version of the hub. */
export const VERSION_HEADER = "x-toolcrib-version";
