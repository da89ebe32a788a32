/**
 * The names that a client of one server alone sees: the server's own. Such a client has given the server a name itself, and puts it
 * before the tools. Everything behind the door uses public names, and public names are accepted as well.
 */
import { Naming } from "../../catalog/naming.ts";
import type { Hub } from "../../hub/hub.ts";
import type { Capability, PromptCapability, ToolCapability } from "../../model/capability.ts";
import type { Session } from "../../sessions/session.ts";

type Named = ToolCapability | PromptCapability;

interface BareNames {
  readonly byPublic: ReadonlyMap<string, string>;
  readonly byBare: ReadonlyMap<string, string>;
}

/** By the list that they were made for: a changed catalog has other lists. */
const known = new WeakMap<readonly Named[], BareNames>();
const renamed = new WeakMap<readonly Capability[], readonly Capability[]>();

/** A part of a view, under the names that the client sees. @param all The part's kind in the whole view. */
export function asListed<C extends Capability>(
  hub: Hub,
  session: Session,
  capabilities: readonly C[],
  all: readonly Named[],
): readonly C[] {
  const names = bareNames(hub, session, all);
  if (names === undefined) return capabilities;
  let list = renamed.get(capabilities);
  if (list === undefined) {
    list = capabilities.map((each) => ({ ...each, name: names.byPublic.get(each.name) ?? each.name }));
    renamed.set(capabilities, list);
  }
  // Made of the same capabilities, with other names.
  return list as readonly C[];
}

/** @param all Of its kind, in the view of the session. */
export function publicName(hub: Hub, session: Session, name: string, all: () => readonly Named[]): string {
  if (!seesOneServer(session)) return name;
  return bareNames(hub, session, all())?.byBare.get(name) ?? name;
}

function seesOneServer(session: Session): boolean {
  return session.rules?.servers?.length === 1;
}

function bareNames(hub: Hub, session: Session, all: readonly Named[]): BareNames | undefined {
  if (!seesOneServer(session)) return undefined;
  let names = known.get(all);
  if (names === undefined) known.set(all, (names = makeNames(hub, all)));
  return names;
}

function makeNames({ config }: Hub, all: readonly Named[]): BareNames {
  const ids = new Set(config.servers.filter(({ toolPrefix }) => toolPrefix === undefined).map(({ id }) => id));
  const sources = new Set(all.map(({ origin }) => origin.source).filter((id) => ids.has(id)));
  const [server] = sources;
  const isTools = all.every(({ kind }) => kind === "tool");
  const overrides = isTools ? config.servers.find(({ id }) => id === server)?.overrides : undefined;
  // A role's own server may come beside the one that was asked for.
  if (server === undefined || sources.size > 1) return { byPublic: new Map(), byBare: new Map() };
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
  const pairs = own.map(({ name, origin }) => [name, bare.get(origin.name) ?? name] as const);
  return { byPublic: new Map(pairs), byBare: new Map(pairs.map(([name, short]) => [short, name])) };
}
