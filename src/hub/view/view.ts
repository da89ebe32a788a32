/** The part of the catalog that one kind of session may see. Sessions that see the same share one View. */
import { LruMap } from "../../base/maps.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { Snapshot } from "../../catalog/snapshot.ts";
import type {
  Capability,
  PromptCapability,
  ResourceCapability,
  TemplateCapability,
  ToolCapability,
} from "../../model/capability.ts";
import type { Use } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";
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

export class Views {
  readonly #catalog: Catalog;
  readonly #access: AccessControl;
  readonly #shapes: SessionShapes;
  #snapshot: Snapshot | undefined;
  /** For roles that nothing names, however many are invented. */
  #nothing: View | undefined;
  readonly #ofRoles = new LruMap<string, View>(MAX_ROLE_VIEWS);
  /** Apart, so that no choice of parts drives out the views that roles have by the config. */
  readonly #narrowed = new LruMap<string, View>(MAX_NARROWED_VIEWS);
  /** Of sessions that brought something. */
  #joined = new WeakMap<Session, SessionView>();

  constructor(catalog: Catalog, access: AccessControl, shapes: SessionShapes) {
    this.#catalog = catalog;
    this.#access = access;
    this.#shapes = shapes;
  }

  of(session: Session): View {
    const shared = this.#shared(session);
    const own = session.mounted?.snapshot;
    return own === undefined || shared === this.#nothing ? shared : this.#join(session, shared, own);
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
