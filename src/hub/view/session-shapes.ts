/** The catalog through the roles and views of the config: which tools a session sees, and with which definitions. */
import { LruMap } from "../../base/maps.ts";
import type { Catalog, CatalogReader } from "../../catalog/catalog.ts";
import { describeMisfit, misfitOf, type ShapedTools, shapeTools, type ToolLayer } from "../../catalog/overrides.ts";
import type { ResourceRoute, Snapshot } from "../../catalog/snapshot.ts";
import type { PromptCapability, TemplateCapability, ToolCapability } from "../../model/capability.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { Overrides } from "../../model/server-spec.ts";
import type { Source } from "../../model/source.ts";
import type { PolicyActor } from "../../policy/decide.ts";
import type { Session } from "../../sessions/session.ts";

/** Clients choose how they narrow; what was made for the least recently used way is made again. */
const MAX_ACTORS = 256;

/** The overrides of one role and some views, and the tools that they were last applied to. */
interface Layers {
  readonly ofTools: ReadonlyMap<string, readonly ToolLayer[]>;
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
      layers.last = { tools, shaped: shapeTools(tools, layers.ofTools, layers.known) };
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
    const role = this.#roleWithOverrides(session.role);
    if (role === undefined && (views === undefined || views.length === 0)) return undefined;
    const key = JSON.stringify([role ?? null, views ?? null]);
    if (!this.#layers.has(key)) this.#layers.set(key, this.#make(role, views ?? []));
    return this.#layers.get(key);
  }

  #roleWithOverrides(role: string | undefined): string | undefined {
    const { roles } = this.#config.config;
    return role !== undefined && Object.hasOwn(roles, role) && roles[role]?.overrides !== undefined ? role : undefined;
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
    return ofTools.size === 0 ? undefined : { ofTools, known: new WeakMap(), readers: new WeakMap(), last: undefined };
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
