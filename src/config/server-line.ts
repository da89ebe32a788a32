import { readFile } from "node:fs/promises";
import { isJsonObject } from "../model/json.ts";
import { Document } from "./document.ts";

const CONTAINERS = [["mcpServers"], ["servers"], ["mcp", "servers"], ["mcp"]];

/** The line at which a file names a server; undefined if that cannot be said. */
export async function lineOfServer(file: string, id: string): Promise<number | undefined> {
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  const document = Document.parse(file, text);
  for (const container of CONTAINERS) {
    const servers = container.reduce<unknown>(
      (value, key) => (isJsonObject(value) ? value[key] : undefined),
      document.value,
    );
    if (!isJsonObject(servers) || !Object.hasOwn(servers, id)) continue;
    const place = { severity: "warning", code: "named", message: "", atKey: true } as const;
    return document.report([...container, id], place).line || undefined;
  }
  return undefined;
}
