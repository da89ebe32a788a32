import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { AgentClient, ClientFile, ClientPlace, ClientScope } from "../../clients/client.ts";
import { assertInside } from "../../files/assert-inside.ts";

/**
 * The file of a scope that is written; undefined if the client has none. Several products and versions of a client have
 * folders of their own, so the first folder that is there counts, and in it the file that is there. Throws `denied` for a
 * project's file that a link of the project leads out of it.
 */
export function fileToWrite(client: AgentClient, scope: ClientScope, place: ClientPlace): ClientFile | undefined {
  // A user's file that also keeps servers by project is read, but a project's own file is the one to write.
  const files = client.files(place).filter((file) => file.scope === scope && file.projectKey === undefined);
  const folder = files.map(({ path }) => dirname(path)).find((path) => existsSync(path));
  const inFolder = files.filter(({ path }) => folder === undefined || dirname(path) === folder);
  const chosen = inFolder.find(({ path }) => existsSync(path)) ?? inFolder[0];
  if (chosen?.scope === "project") assertInside(place.projectDir, chosen.path);
  return chosen;
}
