/** Where a config file holds a credential in plain text: that part of it stays on its node. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { isPlainText, looksLikeCredential } from "../../secrets/looks-like-secret.ts";
import { plainCredentials } from "../../secrets/plain-credentials.ts";
import { maskTokens } from "../../secrets/token-shapes.ts";
import type { Path } from "./shared-document.ts";

/** `postgres://me:password@host/db`, wherever it stands. */
const PASSWORD_IN_ADDRESS = /[a-z][\w+.-]{0,20}:\/\/[^\s/?#@:]*:([^\s/?#@]+)@/i;

/** Of a server the path of its entry, of anything else that of the value, or of the list that it stands in. */
export function plainPlaces(document: JsonObject): Path[] {
  const { mcpServers, roles, ...rest } = document;
  return [
    ...plainServers(["mcpServers"], mcpServers),
    ...entriesOf(roles).flatMap(([role, entry]) => plainServers(["roles", role, "mcpServers"], entry["mcpServers"])),
    ...plainValues([], rest),
  ];
}

function plainServers(path: Path, servers: unknown): Path[] {
  const found = entriesOf(servers).filter(([, entry]) => plainCredentials(entry).length > 0);
  return found.map(([id]) => [...path, id]);
}

function plainValues(path: Path, value: JsonObject): Path[] {
  return Object.entries(value).flatMap(([key, item]): Path[] => {
    const here = [...path, key];
    if (isJsonObject(item)) return plainValues(here, item);
    return holdsPlain(key, item) ? [here] : [];
  });
}

function holdsPlain(key: string, value: unknown): boolean {
  if (Array.isArray(value)) return value.some((item) => holdsPlain(key, item));
  if (isJsonObject(value)) return Object.entries(value).some(([inner, item]) => holdsPlain(inner, item));
  if (typeof value !== "string") return false;
  const [, password = ""] = PASSWORD_IN_ADDRESS.exec(value) ?? [];
  if (password !== "" && isPlainText(password)) return true;
  return (looksLikeCredential(key) && isPlainText(value)) || maskTokens(value) !== value;
}

function entriesOf(value: unknown): [string, JsonObject][] {
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([key, entry]) => (isJsonObject(entry) ? [[key, entry]] : []));
}
