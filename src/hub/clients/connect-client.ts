/** Connects agent clients of this machine to this Toolcrib, and disconnects them. */
import { rmdir } from "node:fs/promises";
import { clientById } from "../../clients/clients.ts";
import { type AgentClient, type ClientEnvironment, type ClientFile, namedInEntry } from "../../clients/agent-client.ts";
import { isInstalled, openClientFile } from "../../config/client-servers.ts";
import { ChangeSet, recoverChanges } from "../../files/change-set/change-set.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { changesDir } from "../install/install-files.ts";
import { fileToWrite, removeClientServers, writeClientServers } from "./client-files.ts";
import { gatewayCommand } from "./gateway-command.ts";

/** The entry for the whole catalog. */
const ENTRY_ID = "toolcrib";

interface ConnectOptions {
  readonly clientId: string;
  readonly place: ClientEnvironment;
  /** Toolcrib's own. */
  readonly home: string;
  readonly configFile: string | null;
  readonly warn: (message: string) => void;
}

interface ChangedClient {
  readonly client: AgentClient;
  readonly file: string;
  readonly changed: boolean;
}

/** Through the bridge, which finds the hub wherever it listens, and starts one where none runs. */
export async function connectClient(options: ConnectOptions): Promise<ChangedClient> {
  const { place, home, configFile, warn } = options;
  const { client, file } = userFileOf(options);
  const servers = { [ENTRY_ID]: gatewayCommand({ configFile, env: place.env, client: namedInEntry(client) }) };
  const { written } = await withChangeSet(home, { warn, note: warn }, (changes) =>
    writeClientServers({ client, file, servers, changes, home }),
  );
  return { client, file: file.path, changed: written.length > 0 };
}

/** Removes what was written and has not been edited since. */
export async function disconnectClient(options: ConnectOptions): Promise<ChangedClient> {
  const { home, warn } = options;
  const { client, file } = userFileOf(options);
  const plan = await withChangeSet(home, { warn, note: warn }, (changes) =>
    removeClientServers({ client, file, ids: [ENTRY_ID], force: false, changes, home }),
  );
  if (plan.kept.length > 0) {
    throw new ToolcribError(
      "conflict",
      `The entry in ${file.path} was edited since, or was not written by this Toolcrib.`,
      {
        hint: "Remove it by hand.",
      },
    );
  }
  // Fails, as it should, if the folder is not empty.
  for (const folder of plan.madeFolders.toReversed()) await rmdir(folder).catch(() => undefined);
  return { client, file: file.path, changed: plan.removed.length > 0 };
}

function userFileOf({ clientId, place }: ConnectOptions): { readonly client: AgentClient; readonly file: ClientFile } {
  const client = clientById(clientId);
  if (client === undefined) throw new ToolcribError("not_found", `There is no client ${JSON.stringify(clientId)}.`);
  const file = fileToWrite(client, "user", place);
  if (file !== undefined) return { client, file };
  throw new ToolcribError("invalid_arguments", `${client.name} has no user file for MCP servers.`, {
    hint: "Add the entry to the file of a project.",
  });
}

/** Whether a client is on this machine, and whether one of its user files has Toolcrib in it. */
export async function clientState(
  client: AgentClient,
  place: ClientEnvironment,
): Promise<{ readonly installed: boolean; readonly connected: boolean }> {
  if (!isInstalled(client, place)) return { installed: false, connected: false };
  const files = client.files(place).filter(({ scope, projectKey }) => scope === "user" && projectKey === undefined);
  const opened = await Promise.all(files.map((file) => openClientFile(client, file)));
  return { installed: true, connected: opened.some((each) => each.state === "read" && each.own.length > 0) };
}

/** Changes of several files as one: all of them are undone if one fails. */
export async function withChangeSet<T>(
  home: string,
  out: { warn(message: string): void; note(message: string): void },
  task: (changes: ChangeSet) => Promise<T>,
): Promise<T> {
  const journalDir = changesDir(home);
  const onKept = (file: string): void =>
    out.warn(`An interrupted command left ${file} half changed, and it was edited since. Check its content.`);
  for (const file of await recoverChanges(journalDir, { onKept })) {
    out.note(`Restored ${file}, which an interrupted command had left half changed.`);
  }
  const changes = new ChangeSet({ journalDir });
  let result: T;
  try {
    result = await task(changes);
  } catch (thrown) {
    const { kept } = await changes.undo();
    if (kept.length === 0) throw thrown;
    const { code, message: reason, hint, details } = asToolcribError(thrown);
    const message = `${reason} Not undone, because other programs changed them meanwhile: ${kept.join(", ")}`;
    throw new ToolcribError(code, message, { hint, details, cause: thrown });
  }
  await changes.done();
  // An existing folder tells other commands that there may be something to recover.
  await rmdir(journalDir).catch(() => undefined);
  return result;
}
