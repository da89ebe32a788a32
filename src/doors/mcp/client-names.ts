/**
 * The names that a client sees, where they differ from the public ones: a client of one server alone sees the server's own names,
 * and clients that put a prefix before names see shorter ones, or another separator. Everything behind the door uses public names,
 * and public names are accepted as well.
 */
import { createHash } from "node:crypto";
import { MAX_NAME_LENGTH, Naming } from "../../catalog/naming.ts";
import { clientById, clientThatSays } from "../../clients/clients.ts";
import type { Hub } from "../../hub/hub.ts";
import type { Capability, PromptCapability, ToolCapability } from "../../model/capability.ts";
import type { ClientInfo } from "../../model/client-info.ts";
import type { Session } from "../../sessions/session.ts";

type Named = ToolCapability | PromptCapability;

/** Whose names they are. */
export interface Viewer {
  readonly session: Session;
  /** Of a client without a session; the session's own if absent. */
  readonly clientInfo?: ClientInfo | undefined;
}

interface NameStyle {
  /** The server that the client is for, under its own names. */
  readonly only: string | undefined;
  /** Stands for `__`. */
  readonly separator: string | undefined;
  readonly maxLength: number;
}

interface ClientNames {
  readonly byPublic: ReadonlyMap<string, string>;
  readonly byShown: ReadonlyMap<string, string>;
}

/** The name that `connect` gives the entry of the whole catalog. */
const ENTRY = "toolcrib";
const HASH_LENGTH = 8;
const NONE: ClientNames = { byPublic: new Map(), byShown: new Map() };

/** By the list that they were made for, because a changed catalog has other lists, and by style. */
const known = new WeakMap<readonly Named[], Map<string, ClientNames>>();
const renamed = new WeakMap<readonly Capability[], Map<string, readonly Capability[]>>();

/** A part of a view, under the names that the client sees. @param all The part's kind in the whole view. */
export function asListed<C extends Capability>(
  hub: Hub,
  viewer: Viewer,
  capabilities: readonly C[],
  all: readonly Named[],
): readonly C[] {
  const style = styleOf(viewer);
  const names = style && namesFor(hub, style, all);
  if (names === undefined || names.byPublic.size === 0) return capabilities;
  const lists = entryOf(renamed, capabilities);
  const key = JSON.stringify(style);
  let list = lists.get(key);
  if (list === undefined) {
    list = capabilities.map((each) => ({ ...each, name: names.byPublic.get(each.name) ?? each.name }));
    lists.set(key, list);
  }
  // Made of the same capabilities, with other names.
  return list as readonly C[];
}

/** @param all Of its kind, in the view of the session. */
export function publicName(hub: Hub, viewer: Viewer, name: string, all: () => readonly Named[]): string {
  const style = styleOf(viewer);
  return (style && namesFor(hub, style, all()).byShown.get(name)) ?? name;
}

/** Undefined for a client that sees public names. */
function styleOf({ session, clientInfo = session.clientInfo }: Viewer): NameStyle | undefined {
  const servers = session.rules?.servers;
  const only = servers?.length === 1 ? servers[0] : undefined;
  const shown = clientInfo && (clientById(clientInfo.entryOf ?? "") ?? clientThatSays(clientInfo.name))?.toolNames;
  if (only === undefined && shown === undefined) return undefined;
  const prefix = shown?.prefix(only ?? ENTRY) ?? "";
  // A long id leaves room for a hash and a few letters.
  const maxLength = Math.max(MAX_NAME_LENGTH - prefix.length, MAX_NAME_LENGTH / 4);
  return { only, separator: shown?.separator, maxLength };
}

function namesFor(hub: Hub, style: NameStyle, all: readonly Named[]): ClientNames {
  const made = entryOf(known, all);
  const key = JSON.stringify(style);
  let names = made.get(key);
  if (names === undefined) made.set(key, (names = makeNames(hub, style, all)));
  return names;
}

function makeNames(hub: Hub, { only, separator, maxLength }: NameStyle, all: readonly Named[]): ClientNames {
  const bare = only === undefined ? undefined : bareNames(hub, all);
  const wanted = all.map(({ name }) => {
    const base = bare?.get(name) ?? name;
    return { name, base, plain: separator === undefined ? base : base.replaceAll("__", separator) };
  });
  const count = new Map<string, number>();
  for (const { plain } of wanted) count.set(plain, (count.get(plain) ?? 0) + 1);
  const pairs = wanted.flatMap(({ name, base, plain }) => {
    const isShared = plain !== base && (count.get(plain) ?? 0) > 1;
    const shown = isShared || plain.length > maxLength ? withHash(plain, name, maxLength) : plain;
    return shown === name ? [] : [[name, shown] as const];
  });
  if (pairs.length === 0) return NONE;
  return { byPublic: new Map(pairs), byShown: new Map(pairs.map(([name, shown]) => [shown, name])) };
}

function withHash(plain: string, name: string, maxLength: number): string {
  const hash = createHash("sha256").update(name).digest("hex").slice(0, HASH_LENGTH);
  return `${plain.slice(0, maxLength - HASH_LENGTH - 1)}-${hash}`;
}

/** The only server's own names, by their public ones. */
function bareNames({ config }: Hub, all: readonly Named[]): ReadonlyMap<string, string> {
  const ids = new Set(config.servers.filter(({ toolPrefix }) => toolPrefix === undefined).map(({ id }) => id));
  const sources = new Set(all.map(({ origin }) => origin.source).filter((id) => ids.has(id)));
  const [server] = sources;
  // A role's own server may come beside the one that was asked for.
  if (server === undefined || sources.size > 1) return new Map();
  const isTools = all.every(({ kind }) => kind === "tool");
  const overrides = isTools ? config.servers.find(({ id }) => id === server)?.overrides : undefined;
  // A name that a role or a view gives is whole as it is.
  const isPrefixed = (each: Named): boolean =>
    each.origin.source === server && !(each.kind === "tool" && each.shape?.isRenamed === true);
  const own = all.filter(isPrefixed);
  const taken = new Set(all.filter((each) => !isPrefixed(each)).map(({ name }) => name));
  const naming = new Naming(config.config.tools.naming, [{ id: server, toolPrefix: "" }]);
  const bare = naming.serverNames(
    server,
    own.map(({ origin }) => origin.name),
    taken,
    overrides,
  );
  return new Map(own.map(({ name, origin }) => [name, bare.get(origin.name) ?? name]));
}

function entryOf<List extends object, Value>(lists: WeakMap<List, Map<string, Value>>, list: List): Map<string, Value> {
  let entry = lists.get(list);
  if (entry === undefined) lists.set(list, (entry = new Map()));
  return entry;
}
