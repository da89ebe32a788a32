/** The ways in which a client reaches a gateway. */
import type { Era } from "../../src/model/protocol.ts";
import { type Channel, HttpChannel, LineChannel, SseChannel } from "./channels.ts";
import type { Gateway } from "./gateway.ts";

export const ERAS: readonly Era[] = ["legacy", "modern"];
export type Door = "http" | "sse" | "stdio";

export const CLIENTS: readonly { readonly era: Era; readonly door: Door }[] = [
  { era: "legacy", door: "http" },
  { era: "legacy", door: "sse" },
  { era: "legacy", door: "stdio" },
  { era: "modern", door: "http" },
  { era: "modern", door: "stdio" },
];

export function channelTo(gateway: Gateway, door: Door, headers: Readonly<Record<string, string>> = {}): Channel {
  if (door === "stdio") return new LineChannel(gateway.pipe());
  return door === "sse"
    ? new SseChannel(`${gateway.url}/sse`, headers)
    : new HttpChannel(`${gateway.url}/mcp`, headers);
}
