/** The part of the catalog that one kind of session may see. Sessions that see the same share one View. */
import { LruMap } from "../../base/maps.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { Snapshot } from "../../catalog/snapshot.ts";
import { fingerprint } from "../../base/fingerprint.ts";
import {
  type Capability,
  LOCAL_SOURCE,
  type PromptCapability,
  type ResourceCapability,
  type TemplateCapability,
  type ToolCapability,
} from "../../model/capability.ts";
import type { ToolDefinition } from "../../model/protocol.ts";
import type { Use } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";
import type { ToolRegistry } from "../../tools/tool-registry.ts";
import type { ServerConnection } from "../../upstream/server-connection.ts";
import type { AccessControl } from "../call/access-control.ts";
import type { SessionShapes } from "./session-shapes.ts";

export interface View {
  readonly version: number;
  readonly tools: readonly ToolCapability[];
  readonly resources: readonly ResourceCapability[];
  readonly templates: readonly TemplateCapability[];
  readonly prompts: readonly PromptCapability[];
}

/** Clients choose how they narrow, which must not fill the memory; an evicted view is made again when it is needed. */
const MAX_ROLE_VIEWS = 64;
const MAX_NARROWED_VIEWS = 64;

/** A session's view, and what it was made of. */
interface SessionView {
  readonly view: View;
  readonly shared: View;
  readonly own: Snapshot;
}

/** The tools that a program registered, which factories may make for each session. */
type LocalTools = Pick<ToolRegistry, "hasFactories" | "version" | "definitionsFor">;

/** The view of a session with the tools that factories made for it, and what it was made of. */
interface MadeView {
  readonly view: View;
  readonly shared: View;
  readonly version: number;
  readonly byName: ReadonlyMap<string, ToolCapability>;
}

export class Views {
  readonly #catalog: Catalog;
  readonly #access: AccessControl;
  readonly #shapes: SessionShapes;
  readonly #local: LocalTools;
  #made = new WeakMap<Session, MadeView>();
  #snapshot: Snapshot | undefined;
  /** For roles that nothing names, however many are invented. */
  #nothing: View | undefined;
  readonly #ofRoles = new LruMap<string, View>(MAX_ROLE_VIEWS);
  /** Apart, so that no choice of parts drives out the views that roles have by the config. */
  readonly #narrowed = new LruMap<string, View>(MAX_NARROWED_VIEWS);
  /** Of sessions that brought something. */
  #joined = new WeakMap<Session, SessionView>();

  constructor(catalog: Catalog, access: AccessControl, shapes: SessionShapes, local: LocalTools) {
    this.#catalog = catalog;
    this.#access = access;
    this.#shapes = shapes;
    this.#local = local;
  }

  of(session: Session): View {
    const shared = this.#madeFor(session, this.#shared(session)).view;
    const own = session.mounted?.snapshot;
    return own === undefined || shared === this.#nothing ? shared : this.#join(session, shared, own);
  }

  /**
   * The tool that a session has under a name, where factories make tools: `found` is what its catalog has. Undefined if there
   * is none, or the factory refuses it.
   */
  localTool(session: Session, name: string, found: ToolCapability | undefined): ToolCapability | undefined {
    if (!this.#local.hasFactories || (found !== undefined && found.origin.source !== LOCAL_SOURCE)) return found;
    // A name of the hub's that the session does not have was taken from it by its role or view.
    if (found === undefined && this.#catalog.find(name) !== undefined) return undefined;
    const made = this.#madeFor(session, this.#shared(session)).byName.get(found?.origin.name ?? name);
    return made !== undefined && found?.shape !== undefined ? found : made;
  }

  #madeFor(session: Session, shared: View): Pick<MadeView, "view" | "byName"> {
    if (!this.#local.hasFactories || shared === this.#nothing) return { view: shared, byName: new Map() };
    const { version } = this.#local;
    const known = this.#made.get(session);
    if (known?.shared === shared && known.version === version) return known;
    const { id: sessionId, role, workspaceDir, owner } = session;
    const definitions = this.#local.definitionsFor({ sessionId, role, workspaceDir, owner });
    const sourceOf = (name: string): string | undefined => this.#catalog.find(name)?.origin.source;
    const mine = definitions.filter(({ name }) => (sourceOf(name) ?? LOCAL_SOURCE) === LOCAL_SOURCE);
    const byName = new Map(mine.map((definition) => [definition.name, localCapability(definition)] as const));
    const listed = shared.tools.flatMap((tool) => {
      if (tool.origin.source !== LOCAL_SOURCE) return [tool];
      const made = byName.get(tool.origin.name);
      // What the config says about a tool counts for the one that was made, too.
      return made === undefined ? [] : [tool.shape === undefined ? made : tool];
    });
    const added = [...byName.values()].filter(({ name }) => sourceOf(name) === undefined);
    const view = { ...shared, tools: [...listed, ...added].filter(this.#access.visibleTo(session)) };
    const made = { view, shared, version, byName };
    this.#made.set(session, made);
    return made;
  }

  /** Capabilities that it brought come last. */
  #join(session: Session, shared: View, own: Snapshot): View {
    const known = this.#joined.get(session);
    if (known?.shared === shared && known.own === own) return known.view;
    const visible = this.#visible(session, own);
    const view = {
      version: shared.version + own.version,
      tools: [...shared.tools, ...visible.tools],
      resources: [...shared.resources, ...visible.resources],
      templates: [...shared.templates, ...visible.templates],
      prompts: [...shared.prompts, ...visible.prompts],
    };
    this.#joined.set(session, { view, shared, own });
    return view;
  }

  #shared(session: Session): View {
    const snapshot = this.#catalog.snapshot();
    if (snapshot !== this.#snapshot) {
      this.forget();
      this.#snapshot = snapshot;
    }
    if (!this.#access.knowsRoleOf(session)) {
      this.#nothing ??= { version: snapshot.version, tools: [], resources: [], templates: [], prompts: [] };
      return this.#nothing;
    }
    const key = session.viewKey;
    const views = session.rules === undefined ? this.#ofRoles : this.#narrowed;
    let view = views.get(key);
    if (view === undefined) {
      view = this.#throughViews(
        session,
        this.#visible(session, snapshot, this.#shapes.toolsOf(session, snapshot)?.list),
      );
      views.set(key, view);
    }
    return view;
  }

  /** A view of the config is a choice of tools. What else it shows is that of their servers. */
  #throughViews(session: Session, view: View): View {
    if (this.#shapes.viewsOf(session) === undefined) return view;
    const sources = new Set(view.tools.map(({ origin }) => origin.source));
    const isMeant = ({ origin }: Capability): boolean => sources.has(origin.source);
    const { resources, templates, prompts } = view;
    return {
      ...view,
      resources: resources.filter(isMeant),
      templates: templates.filter(isMeant),
      prompts: prompts.filter(isMeant),
    };
  }

  #visible(
    session: Session,
    { version, tools: listed, resources, templates, prompts }: Snapshot,
    tools: readonly ToolCapability[] = listed,
  ): View {
    const shows = this.#access.visibleTo(session);
    return {
      version,
      tools: tools.filter(shows),
      resources: resources.filter(shows),
      templates: templates.filter(shows),
      prompts: prompts.filter(shows),
    };
  }

  /** For when what may be seen changed and the catalog did not, as after the approval of a pin. */
  forget(): void {
    this.#nothing = undefined;
    this.#ofRoles.clear();
    this.#narrowed.clear();
    this.#joined = new WeakMap();
    this.#made = new WeakMap();
  }

  names(session: Session, kind: Use["kind"]): readonly string[] {
    const view = this.of(session);
    switch (kind) {
      case "tool":
        return view.tools.map((tool) => tool.name);
      case "prompt":
        return view.prompts.map((prompt) => prompt.name);
      case "resource":
      case "subscribe":
      case "unsubscribe":
        return view.resources.map((resource) => resource.name);
      case "completion":
        return [...view.prompts, ...view.templates].map((capability) => capability.name);
    }
  }
}

/** A tool keeps its definition, and a definition its capability, so that what is known of them is found again. */
const localCapabilities = new WeakMap<ToolDefinition, ToolCapability>();

function localCapability(definition: ToolDefinition): ToolCapability {
  let capability = localCapabilities.get(definition);
  if (capability === undefined) {
    const { name } = definition;
    const origin = { source: LOCAL_SOURCE, name };
    capability = { kind: "tool", name, origin, definition, fingerprint: fingerprint(definition) };
    localCapabilities.set(definition, capability);
  }
  return capability;
}

/** A server's own advice on how to use it. */
export interface ServerInstructions {
  /** The id of the server. */
  readonly server: string;
  /** Its name for people. */
  readonly name: string;
  readonly text: string;
}

interface InstructionSources {
  readonly view: View;
  readonly connections: readonly ServerConnection[];
  /** Whether it is the session of the program that made the hub. */
  readonly isOwn: boolean;
  /** For a text that reads like an attack. */
  readonly withholds: (server: string, text: string) => boolean;
}

/** Of the servers of which the session sees anything, in their order. */
export function serverInstructions(
  session: Session,
  { view, connections, isOwn, withholds }: InstructionSources,
): ServerInstructions[] {
  const { tools, resources, templates, prompts } = view;
  const seen = new Set([...tools, ...resources, ...templates, ...prompts].map(({ origin }) => origin.source));
  return connections.flatMap((connection) => {
    const { id, spec } = connection;
    // Where each user has a connection, what was said to the hub's owner is not for a session without a user.
    const isTheirs = spec.isolation !== "user" || session.user !== undefined || isOwn;
    const text = seen.has(id) && isTheirs ? connection.instructions(session.user, session.id) : null;
    if (text === null || text === "" || withholds(id, text)) return [];
    return [{ server: id, name: spec.name ?? id, text }];
  });
}
