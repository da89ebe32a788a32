/** Edits a server in the store. Running hubs that use the store apply the change by themselves. */
import type { EditResult } from "../config/edit-config.ts";
import { mergeEntry } from "../hub/servers/server-entry.ts";
import type { JsonObject } from "../model/json.ts";
import type { Invocation } from "./command.ts";
import { withHub } from "./running-hub.ts";

/** @param updates Null removes the server; a null value removes a key. */
export async function editStoredServer(
  invocation: Invocation,
  id: string,
  updates: JsonObject | null,
): Promise<EditResult> {
  let result: EditResult = { before: null, after: "" };
  await withHub(invocation, async ({ hub }) => {
    const entry = (await hub.servers.get(id))?.config ?? {};
    result = { before: textOf(entry), after: updates === null ? "" : textOf(mergeEntry(entry, updates)) };
    if (invocation.flags.has("dryRun") || result.before === result.after) return 0;
    if (updates === null) await hub.servers.remove(id);
    else await hub.servers.update(id, updates);
    hub.audit.note({
      event: updates === null ? "server.removed" : "server.changed",
      door: hub.session.door,
      session: hub.session.id,
      user: null,
      origin: { source: id, name: id },
      ...(updates === null ? {} : { details: { keys: Object.keys(updates) } }),
    });
    return 0;
  });
  return result;
}

function textOf(entry: JsonObject): string {
  return `${JSON.stringify(entry, null, 2)}\n`;
}
