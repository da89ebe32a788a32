/** What writing servers into a client's file comes to: the new text, and what must be remembered to take it out again. */
import type { AgentClient, ClientFile, WrittenServer } from "../../clients/client.ts";
import { valueAt } from "../../files/edit/paths.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { BY_CONNECT, entryDigest, isAt, type WrittenEntry } from "./client-records.ts";
import { editing } from "./editing.ts";
import { assertNoSecrets } from "./no-secrets.ts";
import { patchBetween, revert } from "./text-patch.ts";

export interface WriteRequest {
  readonly client: AgentClient;
  readonly file: ClientFile;
  readonly servers: Readonly<Record<string, WrittenServer>>;
  /** Overwrite an entry of the same name that is not Toolcrib's; it comes back when ours is taken out. */
  readonly replace?: boolean;
  /** Who writes: the names of skills; `toolcrib connect` if absent. */
  readonly by?: string;
}

export interface WritePlan {
  readonly text: string;
  /** Ids that are new or changed, and ids that stood there as wanted. */
  readonly written: readonly string[];
  readonly present: readonly string[];
  /** The entries of this file that were written, to take the place of earlier records. */
  readonly records: readonly WrittenEntry[];
}

/** Throws `conflict` for entries that are not Toolcrib's, `invalid_config` for a text that does not parse. */
export function planWrite(before: string | null, request: WriteRequest, known: readonly WrittenEntry[]): WritePlan {
  const { client, file } = request;
  const wanted = Object.entries(request.servers).map(([id, server]) => ({ id, value: entryFor(client, id, server) }));
  return editing(client, file, (editor) => {
    let text = before ?? client.newFile ?? "";
    let document = editor.parse(text);
    const records: WrittenEntry[] = [];
    const conflicts: string[] = [];
    for (const { id, value } of wanted) {
      const path = client.pathOf(id, file);
      const current = valueAt(document, path);
      if (current !== undefined && entryDigest(current) === entryDigest(value)) continue;
      const earlier = current === undefined ? undefined : known.find((entry) => isAt(entry, file.path, path));
      const isOurs = earlier !== undefined && earlier.digest === entryDigest(current);
      if (current !== undefined && !isOurs && request.replace !== true) {
        conflicts.push(id);
        continue;
      }
      // From the text before ours, so that the way back stays exact.
      const original = earlier?.undo === undefined ? undefined : revert(text, earlier.undo);
      const base = original ?? text;
      const stood = original === undefined ? current : valueAt(editor.parse(base), path);
      const edited = editor.set(base, path, value);
      const common = {
        client: client.id,
        scope: file.scope,
        file: file.path,
        id,
        by: earlier?.by ?? request.by ?? BY_CONNECT,
        path: [...path],
        digest: entryDigest(value),
      };
      if (earlier !== undefined && original === undefined) {
        // What it made and replaced is what counts when it goes.
        const { undo: _undo, ...kept } = earlier;
        records.push({ ...kept, ...common });
      } else {
        records.push({
          ...common,
          madeFrom: edited.madeFrom,
          madeFile: earlier?.madeFile ?? (before === null && records.length === 0),
          ...(earlier?.madeFolders === undefined ? {} : { madeFolders: earlier.madeFolders }),
          ...(stood === undefined ? {} : { replaced: stood }),
          undo: patchBetween(base, edited.text),
        });
      }
      text = edited.text;
      document = editor.parse(text);
    }
    if (conflicts.length > 0) throw taken(request, conflicts, known);
    const written = records.map(({ id }) => id);
    const present = wanted.map(({ id }) => id).filter((id) => !written.includes(id));
    return { text, written, present, records };
  });
}

function entryFor(client: AgentClient, id: string, server: WrittenServer): JsonObject {
  assertNoSecrets(client, id, server);
  const value = client.write(id, server);
  if (value !== undefined) return value;
  throw new ToolcribError(
    "invalid_arguments",
    "url" in server
      ? `${client.name} cannot reach a server by ${server.transport === "sse" ? "SSE" : "URL"} in its file.`
      : `${client.name} cannot start a server with these settings.`,
    { hint: "url" in server ? "Leave --url out: then it starts Toolcrib itself." : undefined },
  );
}

function taken({ client, file }: WriteRequest, ids: readonly string[], known: readonly WrittenEntry[]): ToolcribError {
  const edited = ids.filter((id) => known.some((entry) => isAt(entry, file.path, client.pathOf(id, file))));
  const others = ids.filter((id) => !edited.includes(id));
  const parts = [
    ...(others.length === 0 ? [] : [`has a server of the same name that Toolcrib did not write: ${others.join(", ")}`]),
    ...(edited.length === 0 ? [] : [`has an entry that was edited since Toolcrib wrote it: ${edited.join(", ")}`]),
  ];
  return new ToolcribError("conflict", `${file.path} ${parts.join("; it ")}.`, {
    hint: `--force replaces it${others.length === 0 ? "" : ", and `toolcrib disconnect` brings it back"}. Nothing was written.`,
    details: { client: client.id, file: file.path, ids },
  });
}
