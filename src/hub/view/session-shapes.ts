/** The catalog through the roles and views of the config: which tools a session sees, and with which definitions. */
import { LruMap } from "../../base/maps.ts";
import type { Catalog, CatalogReader } from "../../catalog/catalog.ts";
import { Naming } from "../../catalog/naming.ts";
import { describeMisfit, misfitOf, type ShapedTools, shapeTools, type ToolLayer } from "../../catalog/overrides.ts";
import type { ResourceRoute, Snapshot } from "../../catalog/snapshot.ts";
import {
  isLocalSource,
  type PromptCapability,
  type TemplateCapability,
  type ToolCapability,
} from "../../model/capability.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { Overrides, ServerSpec } from "../../model/server-spec.ts";
import type { Source } from "../../model/source.ts";
import type { PolicyActor } from "../../policy/decide.ts";
import type { Session } from "../../sessions/session.ts";

/** Clients choose how they narrow; what was made for the least recently used way is made again. */
const MAX_ACTORS = 256;

/** The overrides of one role and some views, and the tools that they were last applied to. */
interface Layers {
  readonly ofTools: ReadonlyMap<string, readonly ToolLayer[]>;
  readonly replacements: Replacements | undefined;
  readonly known: WeakMap<ToolCapability, ToolCapability>;
  readonly readers: WeakMap<CatalogReader, ShapedCatalog>;
  last: { readonly tools: readonly ToolCapability[]; readonly shaped: ShapedTools } | undefined;
}

export class SessionShapes {
  readonly #config: LoadedConfig;
  readonly #catalog: Catalog;
  readonly #layers = new Map<string, Layers | undefined>();
  readonly #actors = new LruMap<string, PolicyActor>(MAX_ACTORS);
  readonly #warn: (source: string, message: string) => void;
  /** Tools that were reported, because their override does not fit. */
  readonly #told = new WeakSet<ToolCapability>();

  constructor(config: LoadedConfig, catalog: Catalog, warn: (source: string, message: string) => void) {
    this.#config = config;
    this.#catalog = catalog;
    this.#warn = warn;
  }

  /** The names of the views through which a session sees the tools; undefined if it sees all that its rules allow. */
  viewsOf({ role, view }: Session): readonly string[] | undefined {
    const { roles, views } = this.#config.config;
    const ofRole = role === undefined || !Object.hasOwn(roles, role) ? undefined : roles[role]?.views;
    const chosen = view === undefined ? ofRole : ofRole === undefined || ofRole.includes(view) ? [view] : [];
    return chosen?.filter((name) => Object.hasOwn(views, name));
  }

  /** The session as rules see it: its views narrow it like rules of its own. */
  actorOf(session: Session): PolicyActor {
    const views = this.viewsOf(session);
    if (views === undefined) return session;
    let actor = this.#actors.get(session.viewKey);
    if (actor === undefined) {
      const { role, owner, rules } = session;
      const allow = views.flatMap((name) => this.#config.config.views[name]?.tools ?? []);
      // Views that are gone show nothing of any kind.
      const none = views.length === 0 ? { servers: [] } : {};
      const also = rules === undefined ? [] : [rules, ...(rules.also ?? [])];
      actor = { role, owner, rules: { allow, ...none, also } };
      this.#actors.set(session.viewKey, actor);
    }
    return actor;
  }

  /** The tools of the hub's catalog as the session sees them; undefined if that is as they are. */
  toolsOf(session: Session, { tools }: Snapshot): ShapedTools | undefined {
    const layers = this.#layersOf(session);
    if (layers === undefined) return undefined;
    if (layers.last?.tools !== tools) {
      const ofTools = layers.replacements?.addNames(tools, layers.ofTools) ?? layers.ofTools;
      layers.last = { tools, shaped: shapeTools(tools, ofTools, layers.known) };
      for (const tool of layers.last.shaped.list) this.#report(tool);
    }
    return layers.last.shaped;
  }

  #report(tool: ToolCapability): void {
    const misfit = misfitOf(tool);
    // The catalog reports those of servers.
    if (misfit === undefined || misfit.level === "server" || this.#told.has(tool)) return;
    this.#told.add(tool);
    this.#warn(tool.origin.source, describeMisfit(tool.name, misfit));
  }

  /** The names of the session, resolved. @param reader The catalog without the overrides of its role and views. */
  readerOf(session: Session, reader: CatalogReader): CatalogReader {
    const layers = this.#layersOf(session);
    if (layers === undefined) return reader;
    let shaped = layers.readers.get(reader);
    if (shaped === undefined) {
      const find = (name: string): ToolCapability | undefined =>
        this.toolsOf(session, this.#catalog.snapshot())?.byName.get(name);
      shaped = new ShapedCatalog(this.#catalog, reader, find);
      layers.readers.set(reader, shaped);
    }
    return shaped;
  }

  /** The instructions of the views of a session. */
  instructionsOf(session: Session): { readonly name: string; readonly text: string }[] {
    return (this.viewsOf(session) ?? []).flatMap((name) => {
      const text = this.#config.config.views[name]?.instructions;
      return text === undefined ? [] : [{ name, text }];
    });
  }

  #layersOf(session: Session): Layers | undefined {
    const views = this.viewsOf(session);
    const role = this.#shapingRole(session.role);
    if (role === undefined && (views === undefined || views.length === 0)) return undefined;
    const key = JSON.stringify([role ?? null, views ?? null]);
    if (!this.#layers.has(key)) this.#layers.set(key, this.#make(role, views ?? []));
    return this.#layers.get(key);
  }

  /** The role, if it has overrides or servers of its own. */
  #shapingRole(role: string | undefined): string | undefined {
    const { servers, config } = this.#config;
    if (role === undefined || !Object.hasOwn(config.roles, role)) return undefined;
    const isShaping = config.roles[role]?.overrides !== undefined || replacementsFor(role, servers).length > 0;
    return isShaping ? role : undefined;
  }

  #make(role: string | undefined, views: readonly string[]): Layers | undefined {
    const { config, file } = this.#config;
    const where = file ?? "the hub's config";
    const ofTools = new Map<string, ToolLayer[]>();
    const add = (
      overrides: Overrides,
      layer: Omit<ToolLayer, "override">,
      isLast: (layers: ToolLayer[]) => boolean,
    ): void => {
      for (const [name, override] of Object.entries(overrides)) {
        const layers = ofTools.get(name) ?? [];
        if (!isLast(layers)) ofTools.set(name, [...layers, { override, ...layer }]);
      }
    };
    const ofRole = role === undefined ? undefined : config.roles[role]?.overrides;
    if (ofRole !== undefined) add(ofRole, { level: "role", where: `${where} (role ${role})` }, () => false);
    // Of several views, the first that overrides a tool.
    for (const name of views) {
      const isOfView = (layers: ToolLayer[]): boolean => layers.some(({ level }) => level === "session");
      add(config.views[name]?.overrides ?? {}, { level: "session", where: `${where} (view ${name})` }, isOfView);
    }
    const replacements = role === undefined ? undefined : Replacements.of(role, this.#config);
    if (ofTools.size === 0 && replacements === undefined) return undefined;
    return { ofTools, replacements, known: new WeakMap(), readers: new WeakMap(), last: undefined };
  }
}

function replacementsFor(role: string, servers: readonly ServerSpec[]): ServerSpec[] {
  return servers.filter(({ replaces, roles = [] }) => replaces !== undefined && roles.includes(role));
}

/**
 * The servers that a role has in the place of the hub's. Their tools keep the names of those that they replace, so that a prompt or a
 * skill that names one means the role's own.
 */
class Replacements {
  readonly #specs: readonly ServerSpec[];
  /** Of the servers that the role sees, its own under the ids of those that they replace. */
  readonly #naming: Naming;
  readonly #servers: readonly ServerSpec[];

  private constructor(specs: readonly ServerSpec[], { config, servers }: LoadedConfig) {
    this.#specs = specs;
    this.#servers = servers;
    const replaced = new Set(specs.map(({ replaces }) => replaces));
    const others = servers.filter(({ id, replaces }) => replaces === undefined && !replaced.has(id));
    const own = specs.map((spec) => ({
      ...spec,
      id: spec.replaces ?? spec.id,
      toolPrefix: spec.toolPrefix ?? this.#replacedBy(spec)?.toolPrefix,
    }));
    this.#naming = new Naming(config.tools.naming, [...others, ...own]);
  }

  static of(role: string, config: LoadedConfig): Replacements | undefined {
    const specs = replacementsFor(role, config.servers);
    return specs.length === 0 ? undefined : new Replacements(specs, config);
  }

  #replacedBy({ replaces }: ServerSpec): ServerSpec | undefined {
    return this.#servers.find(({ id }) => id === replaces);
  }

  /** The layers with one more for each tool of these servers, under the name that it has without. */
  addNames(
    tools: readonly ToolCapability[],
    layers: ReadonlyMap<string, readonly ToolLayer[]>,
  ): ReadonlyMap<string, readonly ToolLayer[]> {
    const all = new Map(layers);
    const holders = new Map(tools.map((tool) => [tool.name, tool.origin.source]));
    const taken = new Set(tools.filter(({ origin }) => isLocalSource(origin.source)).map(({ name }) => name));
    for (const spec of this.#specs) {
      const { id, replaces = id, origin } = spec;
      const own = tools.filter((tool) => tool.origin.source === id);
      const names = this.#naming.serverNames(
        replaces,
        own.map((tool) => tool.origin.name),
        taken,
        { ...this.#replacedBy(spec)?.overrides, ...spec.overrides },
      );
      const where = `${origin.file} (server ${id}, in the place of ${replaces})`;
      for (const tool of own) {
        const name = names.get(tool.origin.name) ?? tool.name;
        const holder = holders.get(name);
        // What another server has under this name is not this one's to take.
        if (name === tool.name || (holder !== undefined && holder !== replaces)) continue;
        const written = layers.get(tool.name) ?? layers.get(name) ?? [];
        all.set(tool.name, [{ override: { name }, level: "server", where }, ...written]);
      }
    }
    return all;
  }
}

/** A catalog whose tools have the definitions and names of one role and its views. */
class ShapedCatalog implements CatalogReader {
  readonly #hub: Catalog;
  readonly #reader: CatalogReader;
  readonly #find: (name: string) => ToolCapability | undefined;

  constructor(hub: Catalog, reader: CatalogReader, find: (name: string) => ToolCapability | undefined) {
    this.#hub = hub;
    this.#reader = reader;
    this.#find = find;
  }

  find(name: string): ToolCapability | undefined {
    const shaped = this.#find(name);
    // A name of the hub's that is not among them was given to no tool that the session sees.
    if (shaped !== undefined || this.#hub.find(name) !== undefined) return shaped;
    return this.#reader.find(name);
  }

  findPrompt(name: string): PromptCapability | undefined {
    return this.#reader.findPrompt(name);
  }

  findResource(uri: string): ResourceRoute | undefined {
    return this.#reader.findResource(uri);
  }

  findTemplate(uriTemplate: string): TemplateCapability | undefined {
    return this.#reader.findTemplate(uriTemplate);
  }

  publicUri(source: string, uri: string): string {
    return this.#reader.publicUri(source, uri);
  }

  source(id: string): Source | undefined {
    return this.#reader.source(id);
  }
}
