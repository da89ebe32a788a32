/** MCP Apps: tools that come with a page of their server (`ui://`), which calls tools itself. */
import { isJsonObject, type JsonObject } from "./json.ts";
import type { ToolDefinition } from "./protocol.ts";

export const UI_EXTENSION = "io.modelcontextprotocol/ui";
/** As clients declare it: the kinds of pages that they show. */
export const UI_CAPABILITY: Readonly<JsonObject> = { mimeTypes: ["text/html;profile=mcp-app"] };
export const UI_SCHEME = "ui://";
/** The place of the link before the extension had its present form; servers still write both. */
const FORMER_LINK = "ui/resourceUri";

export function hasUiExtension({ extensions }: Readonly<JsonObject>): boolean {
  return isJsonObject(extensions) && isJsonObject(extensions[UI_EXTENSION]);
}

/** Most tools are for both; some are there only for the page. */
export function isForModels(definition: ToolDefinition): boolean {
  return isVisibleTo("model", definition);
}

export function isForApps(definition: ToolDefinition): boolean {
  return isVisibleTo("app", definition);
}

function isVisibleTo(reader: "model" | "app", { _meta: meta }: ToolDefinition): boolean {
  const ui = meta?.["ui"];
  const visibility = isJsonObject(ui) ? ui["visibility"] : undefined;
  return !Array.isArray(visibility) || visibility.includes(reader);
}

/** The page of a tool, as its server names it. */
export function uiLink({ _meta: meta }: ToolDefinition): string | undefined {
  const ui = meta?.["ui"];
  const link = (isJsonObject(ui) ? ui["resourceUri"] : undefined) ?? meta?.[FORMER_LINK];
  return typeof link === "string" && link.startsWith(UI_SCHEME) ? link : undefined;
}

export function withUiLink(definition: ToolDefinition, uri: string): ToolDefinition {
  const { _meta: meta = {} } = definition;
  const { ui } = meta;
  return {
    ...definition,
    _meta: {
      ...meta,
      ...(isJsonObject(ui) && ui["resourceUri"] !== undefined ? { ui: { ...ui, resourceUri: uri } } : {}),
      ...(meta[FORMER_LINK] === undefined ? {} : { [FORMER_LINK]: uri }),
    },
  };
}
