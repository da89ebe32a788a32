/** Every value of the config under its dotted key, with where it came from. */
import { readFile } from "node:fs/promises";
import type { z } from "zod";
import type { ConfigValueSchema } from "../../../contract/settings.ts";
import { formatPath } from "../../../config/config-path.ts";
import { detectDialect } from "../../../config/dialects/detect.ts";
import type { Document } from "../../../config/document.ts";
import { limitsFromEnv, variableFor } from "../../../config/limits-env.ts";
import type { LoadedConfig } from "../../../config/load-config.ts";
import { parseConfigText } from "../../../config/read-document.ts";
import { isJsonObject } from "../../../model/json.ts";
import { isPlainText, looksLikeCredential } from "../../../secrets/looks-like-secret.ts";
import { MASK } from "../../../secrets/mask.ts";
import type { ApiParts } from "./operation.ts";

type ConfigValue = z.output<typeof ConfigValueSchema>;
type Place = Pick<ConfigValue, "origin" | "where">;

/** Servers are shown one by one, with what is known of each; tokens never. */
const LEFT_OUT = [/^mcpServers$/, /^roles\..*\.mcpServers$/, /^http\.auth\.tokens$/];

interface Leaf {
  readonly path: readonly string[];
  readonly value: unknown;
}

export async function configValues(
  config: LoadedConfig,
  { commandLine = {}, env = process.env }: Pick<ApiParts, "commandLine" | "env">,
): Promise<ConfigValue[]> {
  const document = await readDocument(config);
  const fromEnv = limitsFromEnv(env).limits;
  return leavesOf(config.config, []).map(({ path, value }) => {
    const key = formatPath(path);
    const given = commandLine[key];
    if (given !== undefined) return { key, value: given.value, origin: "command line", where: given.option };
    const [first, limit = ""] = path;
    if (first === "limits" && Object.hasOwn(fromEnv, limit)) {
      return { key, value, origin: "environment", where: variableFor(limit) };
    }
    return { key, value: masked(path, value), ...placeOf(config, document, path) };
  });
}

/** The line on which something of the file stands; the file alone if nothing says. */
export function placeInFile(document: Document, path: readonly string[]): string {
  const { line } = document.report(path, { severity: "warning", code: "place", message: "", atKey: true });
  return line === 0 ? document.file : `${document.file}:${line}`;
}

/** As it is now; the hub takes changes up soon after. Undefined where there is no file, or none that can be read. */
export async function readDocument({ file }: LoadedConfig): Promise<Document | undefined> {
  if (file === null) return undefined;
  try {
    const document = parseConfigText(file, await readFile(file, "utf8"));
    return document.errors.length === 0 ? document : undefined;
  } catch {
    return undefined;
  }
}

function placeOf({ inCode }: LoadedConfig, document: Document | undefined, path: readonly string[]): Place {
  if (inCode) return { origin: "code" };
  if (document === undefined || detectDialect(document.value, document.file) !== "toolcrib")
    return { origin: "default" };
  return isThere(document.value, path) ? { origin: "file", where: placeInFile(document, path) } : { origin: "default" };
}

function isThere(value: unknown, [key, ...rest]: readonly string[]): boolean {
  if (key === undefined) return true;
  return isJsonObject(value) && Object.hasOwn(value, key) && isThere(value[key], rest);
}

/** Lists are values of their own: their entries belong together. */
function leavesOf(value: unknown, path: readonly string[]): Leaf[] {
  if (value === undefined || LEFT_OUT.some((pattern) => pattern.test(path.join(".")))) return [];
  if (!isJsonObject(value) || (Object.keys(value).length === 0 && path.length > 0)) return [{ path, value }];
  return Object.entries(value).flatMap(([key, member]) => leavesOf(member, [...path, key]));
}

function masked(path: readonly string[], value: unknown): unknown {
  if (typeof value !== "string") return value;
  if (looksLikeCredential(path.at(-1) ?? "") && isPlainText(value)) return MASK;
  return value.replace(/^([a-z][a-z0-9+.-]*:\/\/[^:/?#@]*:)([^/?#]*)(?=@)/i, (whole, start: string, password: string) =>
    isPlainText(password) ? start + MASK : whole,
  );
}
