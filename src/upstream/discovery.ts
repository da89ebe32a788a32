/** Reads a server's lists, page by page, and keeps every entry exactly as it came. */
import type { Clock } from "../model/clock.ts";
import { asToolcribError } from "../model/errors.ts";
import { formatBytes } from "../model/content.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type {
  PromptDefinition,
  ResourceDefinition,
  ResourceTemplateDefinition,
  ToolDefinition,
} from "../model/protocol.ts";
import type { Definitions } from "../model/source.ts";
import type { Link } from "./link.ts";
import { mirroredParams } from "./param-headers.ts";
import { rpcOf } from "./rpc-error.ts";
import { METHOD_NOT_FOUND } from "../model/rpc.ts";

/** What a server announces changes of: templates change together with resources. */
export type ListKind = "tools" | "resources" | "prompts";
export const LIST_KINDS: readonly ListKind[] = ["tools", "resources", "prompts"];

/** A server that never stops handing out cursors must not be read for ever. */
const MAX_PAGES = 1000;
/** All pages of one list together. Each entry is fingerprinted, scanned and indexed. */
const MAX_LIST_ENTRIES = 50_000;
const MAX_LIST_BYTES = 16 * 1024 * 1024;

export interface Reading {
  readonly clock: Clock;
  /** Time for all pages of one list. */
  readonly timeoutMs: number;
  readonly warn: (text: string) => void;
}

/** The lists of one kind; a list that could not be read is missing from the answer, and a warning says so. */
export async function readKind(link: Link, kind: ListKind, reading: Reading): Promise<Partial<Definitions>> {
  if (!isJsonObject(link.agreement.capabilities[kind])) return emptyOf(kind);
  switch (kind) {
    case "tools": {
      const tools = await readList<ToolDefinition>(link, "tools/list", "tools", reading);
      return tools === undefined ? {} : { tools: usableTools(link, tools, reading) };
    }
    case "prompts": {
      const prompts = await readList<PromptDefinition>(link, "prompts/list", "prompts", reading);
      return prompts === undefined ? {} : { prompts };
    }
    case "resources": {
      const [resources, templates] = await Promise.all([
        readList<ResourceDefinition>(link, "resources/list", "resources", reading),
        readList<ResourceTemplateDefinition>(link, "resources/templates/list", "resourceTemplates", reading),
      ]);
      return { resources, templates };
    }
  }
}

function emptyOf(kind: ListKind): Partial<Definitions> {
  return kind === "resources" ? { resources: [], templates: [] } : { [kind]: [] };
}

/** Undefined if the list could not be read. */
async function readList<D extends JsonObject>(
  link: Link,
  method: string,
  key: string,
  reading: Reading,
): Promise<D[] | undefined> {
  const deadline = reading.clock.now() + reading.timeoutMs;
  const entries: unknown[] = [];
  let bytes = 0;
  const seen = new Set<string>();
  try {
    for (let cursor: string | undefined, page = 0; ; page++) {
      const timeoutMs = Math.max(deadline - reading.clock.now(), 1);
      const result = await link.peer.request(method, cursor === undefined ? {} : { cursor }, { timeoutMs });
      const list: unknown = result[key];
      if (Array.isArray(list)) {
        for (const entry of list) {
          bytes += sizeOf(entry);
          if (entries.length >= MAX_LIST_ENTRIES || bytes > MAX_LIST_BYTES) {
            const most = `${MAX_LIST_ENTRIES} entries and ${formatBytes(MAX_LIST_BYTES)}`;
            reading.warn(`${method} was cut short after ${entries.length} entries: a list may have ${most}.`);
            return named(entries, method, reading);
          }
          entries.push(entry);
        }
      } else reading.warn(`${method} was answered without a list of ${key}.`);
      const next = result["nextCursor"];
      if (typeof next !== "string" || next === "") break;
      if (seen.has(next) || page + 1 >= MAX_PAGES) {
        const why = seen.has(next) ? "the same cursor came twice" : `there were more than ${MAX_PAGES} pages`;
        reading.warn(`${method} was cut short after ${entries.length} entries: ${why}.`);
        break;
      }
      seen.add(next);
      cursor = next;
    }
  } catch (error) {
    // Many servers that have resources do not know templates at all.
    if (key === "resourceTemplates" && rpcOf(error)?.code === METHOD_NOT_FOUND) return [];
    reading.warn(`${method} could not be read: ${asToolcribError(error).message}`);
    return undefined;
  }
  return named(entries, method, reading);
}

/** What cannot be written is for the quarantine to judge. */
function sizeOf(entry: unknown): number {
  try {
    return JSON.stringify(entry)?.length ?? 0;
  } catch {
    return 0;
  }
}

function named<D extends JsonObject>(entries: readonly unknown[], method: string, reading: Reading): D[] {
  const good = entries.filter((entry) => isJsonObject(entry) && typeof entry["name"] === "string");
  const bad = entries.length - good.length;
  if (bad > 0) reading.warn(`${method} holds ${bad} ${bad === 1 ? "entry" : "entries"} without a name, left out.`);
  // Only the name has been checked: the catalog looks at each definition and quarantines those that are no D.
  return good as D[];
}

/** The modern HTTP transport forbids using a tool whose header annotations are invalid. */
function usableTools(link: Link, tools: ToolDefinition[], reading: Reading): ToolDefinition[] {
  if (link.agreement.era !== "modern" || link.wire.transport !== "http") return tools;
  return tools.filter((tool) => {
    const mirrored = mirroredParams(tool);
    if (!mirrored.ok) reading.warn(`The tool ${JSON.stringify(tool.name)} is left out: ${mirrored.reason}.`);
    return mirrored.ok;
  });
}
