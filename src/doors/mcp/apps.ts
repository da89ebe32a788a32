/**
 * MCP Apps at the door: the page of a tool has a link that leads to its server, and what a page calls by its server's own names
 * reaches that server and no other.
 */
import { mappedUri, splitMappedUri } from "../../catalog/public-uris.ts";
import type { Hub } from "../../hub/hub.ts";
import type { ToolCapability } from "../../model/capability.ts";
import { hasUiExtension, isForApps, UI_SCHEME, uiLink, withUiLink } from "../../model/mcp-apps.ts";
import type { ReadResourceResult } from "../../model/protocol.ts";
import type { ClientSide } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";
import { invalidParams } from "./rpc-messages.ts";

/** By the list that they were made for: a changed catalog has other lists. */
const linked = new WeakMap<readonly ToolCapability[], readonly ToolCapability[]>();
/** The servers whose pages a client has read. */
const opened = new WeakMap<Session, Set<string>>();

/** The tools with links that this client can read. The same list if none has another form here. */
export function withPublicLinks(
  hub: Hub,
  session: Session,
  tools: readonly ToolCapability[],
): readonly ToolCapability[] {
  const pages = tools.flatMap((tool) => {
    const uri = uiLink(tool.definition);
    return uri === undefined ? [] : [{ uri, source: tool.origin.source }];
  });
  if (pages.length === 0) return tools;
  const publicLink = (source: string, uri: string): string => {
    const given = hub.internals.publicUri(session, source, uri);
    const isListed = hub.internals.catalog().findResource(uri)?.source === source;
    const isShared = pages.some((page) => page.uri === uri && page.source !== source);
    return given === uri && isShared && !isListed ? mappedUri(source, uri) : given;
  };
  // Servers need not list their pages.
  for (const { uri, source } of pages) if (publicLink(source, uri) === uri) session.links.add(uri, source);
  let list = linked.get(tools);
  if (list === undefined) {
    const mapped = tools.map((tool) => {
      const uri = uiLink(tool.definition);
      const link = uri === undefined ? undefined : publicLink(tool.origin.source, uri);
      if (link === undefined || link === uri) return tool;
      return { ...tool, definition: withUiLink(tool.definition, toPageUri(link)) };
    });
    list = mapped.every((tool, index) => tool === tools[index]) ? tools : mapped;
    linked.set(tools, list);
  }
  return list;
}

/** Hosts accept no other scheme for a page, so a link that names its server has a form of its own. */
const PAGE_PREFIX = "ui://toolcrib-server/";

function toPageUri(uri: string): string {
  const split = splitMappedUri(uri);
  if (split === undefined || !split.uri.startsWith(UI_SCHEME)) return uri;
  return `${PAGE_PREFIX}${encodeURIComponent(split.source)}/${split.uri.slice(UI_SCHEME.length)}`;
}

/** The public URI of a page; any other URI as it is. */
export function fromPageUri(uri: string): string {
  const [, source, rest] = /^ui:\/\/toolcrib-server\/([^/]+)\/(.*)$/s.exec(uri) ?? [];
  if (source === undefined || rest === undefined) return uri;
  try {
    return mappedUri(decodeURIComponent(source), `${UI_SCHEME}${rest}`);
  } catch {
    return uri;
  }
}

/** A page under the URI that it was asked for by, which a host may compare. */
export function asPage(result: ReadResourceResult, uri: string, asked: string): ReadResourceResult {
  return { ...result, contents: result.contents.map((each) => (each.uri === uri ? { ...each, uri: asked } : each)) };
}

/** @param uri The public one. */
export function notePage(hub: Hub, session: Session, uri: string): void {
  const origin = hub.internals.resourceOrigin(session, uri);
  if (origin === undefined || !origin.name.startsWith(UI_SCHEME)) return;
  const sources = opened.get(session) ?? new Set();
  opened.set(session, sources.add(origin.source));
}

/**
 * The public name of a tool that a page calls by its server's own name. The host does not say whose page calls, so it has to be the
 * one server with pages, among those that the client has opened, that has the tool.
 */
export function appToolName(hub: Hub, session: Session, client: ClientSide, name: string): string {
  if (!hasUiExtension(client.capabilities)) return name;
  const { tools } = hub.view(session);
  if (tools.some((tool) => tool.name === name)) return name;
  const withPages = new Set(tools.filter(({ definition }) => uiLink(definition) !== undefined).map(sourceOf));
  const named = tools.filter((tool) => tool.origin.name === name && withPages.has(sourceOf(tool)));
  const pages = opened.get(session);
  const ofOpened = pages === undefined ? named : named.filter((tool) => pages.has(sourceOf(tool)));
  const [only, another] = ofOpened.filter(({ definition }) => isForApps(definition));
  if (another === undefined) return only?.name ?? name;
  const names = [only, another].map((tool) => tool?.name).join(" or ");
  throw invalidParams(`The pages of several servers have a tool "${name}", so it is unclear whose is meant: ${names}.`);
}

function sourceOf({ origin }: ToolCapability): string {
  return origin.source;
}
