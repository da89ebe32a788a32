/** Operations on servers. */
import type { Hub } from "../../../hub/hub.ts";
import type { ServerDetail } from "../../../contract/server-schemas.ts";
import { ToolcribError } from "../../../model/errors.ts";
import type { JsonObject } from "../../../model/json.ts";
import type { ServerInfo } from "../../../model/server-state.ts";
import { type DeepReadonly, type Handlers, invalidInput, pageOf } from "./operation-handler.ts";
import { visibleServer, visibleServers } from "./visibility.ts";

type ServerOperation =
  | "listServers"
  | "getServer"
  | "addServer"
  | "updateServer"
  | "removeServer"
  | "connectServer"
  | "disconnectServer"
  | "parseServers"
  | "testServer";

export const serverHandlers: Handlers<ServerOperation> = {
  listServers(input, { session }, { hub }) {
    const matching = visibleServers(hub, session).filter((info) => matchesServerFilter(info, input));
    const { entries, total, next } = pageOf(matching, input, ({ id }) => id);
    return { servers: entries, total, ...next };
  },

  async getServer({ serverId }, { session }, { hub }) {
    visibleServer(hub, session, serverId);
    return { server: await detailOf(hub, serverId) };
  },

  async addServer({ serverId, config }, _context, { hub }) {
    const { id: given, ...entry } = config;
    const id = serverId ?? given;
    if (id === undefined) throw invalidInput([{ path: "id", message: "is missing" }]);
    return { server: await changedDetail(hub, await hub.servers.add(id, entry)) };
  },

  async updateServer({ serverId, updates, ifMatch }, { session }, { hub }) {
    visibleServer(hub, session, serverId);
    const info = await hub.servers.update(serverId, updates, ifMatch === undefined ? {} : { ifMatch });
    return { server: await changedDetail(hub, info) };
  },

  async removeServer({ serverId, ifMatch }, { session }, { hub }) {
    visibleServer(hub, session, serverId);
    await hub.servers.remove(serverId, ifMatch === undefined ? {} : { ifMatch });
    return { serverId };
  },

  async connectServer({ serverId }, { session }, { hub }) {
    if (visibleServer(hub, session, serverId).state === "disabled") {
      const hint = "Set `enabled` of its entry to true, which connects it as well.";
      throw new ToolcribError("conflict", `The server "${serverId}" is disabled.`, { hint });
    }
    return { server: await hub.servers.connect(serverId) };
  },

  async disconnectServer({ serverId }, { session }, { hub }) {
    visibleServer(hub, session, serverId);
    return { server: await hub.servers.disconnect(serverId) };
  },

  async parseServers({ text }) {
    const { parsePastedServers: parseServers } = await import("../../../config/pasted-servers.ts");
    return { servers: parseServers(text) };
  },

  testServer({ serverId, config }, { signal }, { hub }) {
    const { id, ...entry }: JsonObject & { id?: string | undefined } = config;
    return hub.servers.test(serverId ?? id, entry, signal);
  },
};

interface ServerFilter {
  readonly q?: string | undefined;
  readonly state?: ServerInfo["state"] | undefined;
  readonly tag?: string | undefined;
}

function matchesServerFilter({ id, name, state, tags }: ServerInfo, filter: ServerFilter): boolean {
  const part = filter.q?.toLowerCase();
  if (part !== undefined && !id.toLowerCase().includes(part) && !name.toLowerCase().includes(part)) return false;
  if (filter.state !== undefined && filter.state !== state) return false;
  return filter.tag === undefined || tags.includes(filter.tag);
}

/** With what was odd about the entry that was sent. */
async function changedDetail(hub: Hub, { id, warnings }: ServerInfo): Promise<DeepReadonly<ServerDetail>> {
  return { ...(await detailOf(hub, id)), warnings: [...warnings] };
}

async function detailOf(hub: Hub, id: string): Promise<DeepReadonly<ServerDetail>> {
  const detail = await hub.servers.get(id);
  if (detail !== undefined) return detail;
  throw new ToolcribError("not_found", `The server "${id}" was removed meanwhile.`);
}
