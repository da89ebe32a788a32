/** What one kind of session may see of the catalog. Sessions that see the same share one View. */
import type { Catalog } from "../catalog/catalog.ts";
import type { Snapshot } from "../catalog/snapshot.ts";
import type { Capability, PromptCapability, ResourceCapability, TemplateCapability, ToolCapability } from "../model/capability.ts";
import type { Use } from "../model/source.ts";
import type { Policy } from "../policy/decide.ts";
import type { Session } from "../sessions/session.ts";
import { subjectOf } from "./locate.ts";

export interface View {
  readonly version: number;
  readonly tools: readonly ToolCapability[];
  readonly resources: readonly ResourceCapability[];
  readonly templates: readonly TemplateCapability[];
  readonly prompts: readonly PromptCapability[];
}

export class Views {
  readonly #catalog: Catalog;
  readonly #policy: Policy;
  readonly #isOwnerOnly: (toolName: string) => boolean;
  #snapshot: Snapshot | undefined;
  #views = new Map<string, View>();

  constructor(catalog: Catalog, policy: Policy, isOwnerOnly: (toolName: string) => boolean) {
    this.#catalog = catalog;
    this.#policy = policy;
    this.#isOwnerOnly = isOwnerOnly;
  }

  of(session: Session): View {
    const snapshot = this.#catalog.snapshot();
    if (snapshot !== this.#snapshot) {
      this.#snapshot = snapshot;
      this.#views.clear();
    }
    const key = `${session.owner ? "owner" : "guest"}:${session.role ?? ""}`;
    let view = this.#views.get(key);
    if (view === undefined) {
      const visible = (capability: Capability): boolean =>
        this.#policy.decide(subjectOf(capability, this.#isOwnerOnly), session).verdict === "allow";
      view = {
        version: snapshot.version,
        tools: snapshot.tools.filter(visible),
        resources: snapshot.resources.filter(visible),
        templates: snapshot.templates.filter(visible),
        prompts: snapshot.prompts.filter(visible),
      };
      this.#views.set(key, view);
    }
    return view;
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
