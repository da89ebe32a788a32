/** What one kind of session may see of the catalog. Sessions that see the same share one View. */
import type { Catalog } from "../catalog/catalog.ts";
import type { Snapshot } from "../catalog/snapshot.ts";
import type {
  Capability,
  PromptCapability,
  ResourceCapability,
  TemplateCapability,
  ToolCapability,
} from "../model/capability.ts";
import type { Use } from "../model/source.ts";
import type { ToolRules } from "../model/tool-rules.ts";
import type { Session } from "../sessions/session.ts";
import type { Gate } from "./gate.ts";

export interface View {
  readonly version: number;
  readonly tools: readonly ToolCapability[];
  readonly resources: readonly ResourceCapability[];
  readonly templates: readonly TemplateCapability[];
  readonly prompts: readonly PromptCapability[];
}

export class Views {
  readonly #catalog: Catalog;
  readonly #gate: Gate;
  #snapshot: Snapshot | undefined;
  #views = new Map<string, View>();
  /** Sessions with rules of their own; sessions of one door usually share one object of rules. */
  #narrowed = new WeakMap<ToolRules, Map<string, View>>();

  constructor(catalog: Catalog, gate: Gate) {
    this.#catalog = catalog;
    this.#gate = gate;
  }

  of(session: Session): View {
    const snapshot = this.#catalog.snapshot();
    if (snapshot !== this.#snapshot) {
      this.forget();
      this.#snapshot = snapshot;
    }
    const views = this.#viewsFor(session.rules);
    const key = `${session.owner ? "owner" : "guest"}${session.role === undefined ? "" : `:${session.role}`}`;
    let view = views.get(key);
    if (view === undefined) {
      const shows = (capability: Capability): boolean => this.#gate.shows(session, capability);
      view = {
        version: snapshot.version,
        tools: snapshot.tools.filter(shows),
        resources: snapshot.resources.filter(shows),
        templates: snapshot.templates.filter(shows),
        prompts: snapshot.prompts.filter(shows),
      };
      views.set(key, view);
    }
    return view;
  }

  /** For when what may be seen changed and the catalog did not, as after the approval of a pin. */
  forget(): void {
    this.#views = new Map();
    this.#narrowed = new WeakMap();
  }

  #viewsFor(rules: ToolRules | undefined): Map<string, View> {
    if (rules === undefined) return this.#views;
    let views = this.#narrowed.get(rules);
    if (views === undefined) this.#narrowed.set(rules, (views = new Map()));
    return views;
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
