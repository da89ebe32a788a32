import { existsSync } from "node:fs";
import type { ConfigView } from "../../../../contract/settings.ts";
import { renderDiagnostic } from "../../../../config/diagnostics.ts";
import type { Document } from "../../../../config/document.ts";
import type { LoadedConfig } from "../../../../config/load-config.ts";
import { configValues, placeInFile, readDocument } from "../config-values.ts";
import type { Handlers } from "../operation.ts";
import type { OperatorHub } from "../operator-hub.ts";
import type { Shown } from "../shown.ts";

export const configHandlers: Handlers<"getConfig"> = {
  async getConfig(_input, _context, parts) {
    const { hub } = parts;
    const { config } = hub;
    const [values, servers] = await Promise.all([configValues(config, parts), serverValues(hub)]);
    const tokens = config.config.http.auth?.tokens ?? [];
    return {
      file: config.file,
      // The others are watched for, and not there yet.
      files: config.files.filter((file) => existsSync(file)),
      values: [...servers, ...values],
      warnings: config.warnings.map(renderDiagnostic),
      tokens: tokens.map(({ user = null, role = null, scopes }) => ({ user, role, scopes })),
      roles: rolesOf(config),
    };
  },
};

type Value = Shown<ConfigView["values"][number]>;

async function serverValues(hub: OperatorHub): Promise<Value[]> {
  const document = await readDocument(hub.config);
  const values = hub.servers().map(async ({ id }): Promise<Value[]> => {
    const detail = await hub.server(id);
    if (detail === undefined) return [];
    const { config: value, from, origin } = detail;
    const key = `mcpServers.${id}`;
    switch (from) {
      case "store":
        return [{ key, value, origin: "store" }];
      case "code":
        return [{ key, value, origin: "code" }];
      // It belongs to a skill, and stands in no config.
      case "skill":
        return [];
      case "file":
      case "import":
        return [{ key, value, origin: "file", where: placeOf(document, origin.file, id) }];
    }
  });
  return (await Promise.all(values)).flat();
}

/** A server of a role is `id@role`, and stands with the role. */
function placeOf(document: Document | undefined, file: string, id: string): string {
  if (document?.file !== file) return file;
  const [, own, role] = /^(.*)@([^@]*)$/.exec(id) ?? [];
  const ofRole = own === undefined || role === undefined ? undefined : ["roles", role, "mcpServers", own];
  const paths = [["mcpServers", id], ...(ofRole === undefined ? [] : [ofRole])];
  const places = paths.map((path) => placeInFile(document, path));
  return places.at(-1) ?? file;
}

/** Those of the config, and those that only servers name. */
function rolesOf({ config, servers }: LoadedConfig): string[] {
  return [...new Set([...Object.keys(config.roles), ...servers.flatMap(({ roles = [] }) => roles)])];
}
