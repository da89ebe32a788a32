import { parseRequiredServers } from "../../../src/skills/servers/parse-required-servers.ts";
import type { RequiredServer } from "../../../src/model/skill.ts";

export const VARIABLES = { CWD: "/work", WORKSPACE: "/work/space", HOME: "/home/ann", SKILL_DIR: "/skills/one" };

export interface Told {
  readonly code: string;
  readonly message: string;
  readonly path: readonly (string | number)[];
}

export function parse(value: unknown): { servers: RequiredServer[]; told: Told[]; codes: string[] } {
  const told: Told[] = [];
  const servers = parseRequiredServers(value, (code, message, path) => void told.push({ code, message, path }));
  return { servers, told, codes: told.map(({ code }) => code) };
}

/** The only server of a value. */
export function only(value: unknown): RequiredServer {
  const { servers } = parse(value);
  const [server] = servers;
  if (server === undefined || servers.length > 1) throw new Error(`${servers.length} servers`);
  return server;
}
