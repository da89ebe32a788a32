/** Short texts about servers. */
import type { ServerDetail } from "../../../../src/contract/server-schemas.ts";

export const FROM_WORDS: Readonly<Record<ServerDetail["from"], string>> = {
  file: "Config file",
  import: "Imported file",
  store: "Added here",
  skill: "Skill",
  code: "Code",
};

export const TRANSPORT_WORDS: Readonly<Record<ServerDetail["transport"], string>> = {
  stdio: "stdio",
  http: "HTTP",
  sse: "SSE",
};

/** The last part of a path. */
export function fileName(path: string): string {
  return path.split(/[\\/]/).findLast((part) => part !== "") ?? path;
}

/** The name of the file that has a server's entry; the file of the hub's own store says nothing. */
export function originText({ file, dialect }: ServerDetail["origin"]): string {
  return dialect === "store" ? "store" : fileName(file);
}

/** States in which connecting makes sense. */
export function canConnect(state: ServerDetail["state"]): boolean {
  return state === "idle" || state === "failed" || state === "closed";
}

export function canDisconnect(state: ServerDetail["state"]): boolean {
  return state === "ready" || state === "degraded" || state === "connecting" || state === "restarting";
}
