/** The Catalog: every capability of every Source under its public name, in versions. */
import { Emitter } from "../base/emitter.ts";
import type { PromptCapability, TemplateCapability, ToolCapability } from "../model/capability.ts";
import { DEFAULT_NAMING } from "../model/config.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Definitions, Source } from "../model/source.ts";
import {
  type Kind,
  KINDS,
  NamedContributions,
  type SourceOffer,
  type SourceView,
  TableBuilder,
  uriContributions,
  viewSource,
} from "./kind-table.ts";
import { type NamedServer, Naming, type TakenNames } from "./naming.ts";
import { mappedUri, PublicUris, splitMappedUri } from "./public-uris.ts";
import type { Quarantined } from "./quarantine.ts";
import { type CatalogChange, compareTables, type ResourceRoute, Snapshot, type Tables } from "./snapshot.ts";

interface CatalogOptions {
  /** Template of public names. */
  readonly naming?: string | undefined;
  /** Every configured server in the config's order, also those that are disabled or down. */
  readonly servers: readonly NamedServer[];
}

/** What names follow from; another object when they may be others. */
interface NamingBasis {
  readonly naming: string;
  readonly servers: readonly NamedServer[];
}

/** The hub's catalog as a session's own last saw it. */
interface BaseState {
  readonly snapshot: Snapshot;
  readonly basis: NamingBasis;
  readonly taken: Readonly<Record<"tool" | "prompt", TakenNames>>;
}

interface CatalogEvents {
  /** Once for every version, in a microtask after it came about. */
  change: CatalogChange;
  warning: { readonly source: string; readonly message: string };
  /** Names follow from another basis now. At once, before there is a version of it. */
  naming: undefined;
}

interface Entry {
  readonly source: Source;
  stopListening(): void;
  view: SourceView | undefined;
  isDirty: boolean;
}

/**
 * Changes of sources are taken up lazily: in a microtask, so that a burst makes one version, or at once when somebody
 * reads. Only the source that changed is looked at again, and of it only definitions that are new objects.
 */
export class Catalog implements CatalogReader {
  readonly #emitter = new Emitter<CatalogEvents>();
  readonly #entries = new Map<string, Entry>();
  readonly #toolNames = new NamedContributions<"tool">();
  readonly #promptNames = new NamedContributions<"prompt">();
  readonly #resourceUris: PublicUris;
  readonly #templateUris: PublicUris;
  readonly #builders = {
    tool: new TableBuilder("tool"),
    resource: new TableBuilder("resource"),
    template: new TableBuilder("template"),
    prompt: new TableBuilder("prompt"),
  };
  readonly #beneath: Catalog | undefined;
  readonly #stopBeneath: () => void;
  #ground: BaseState | undefined;
  #basis: NamingBasis;
  #naming: Naming;
  #tables: Tables;
  #snapshot: Snapshot;
  #quarantined: readonly Quarantined[] = [];
  #isStale = false;
  #isScheduled = false;
  #changes: CatalogChange[] = [];
  #warnings: CatalogEvents["warning"][] = [];

  /** @param beneath The hub's, for one of what a session brings: its names keep clear of the hub's, whose template holds. */
  constructor({ naming = DEFAULT_NAMING, servers }: CatalogOptions, beneath?: Catalog) {
    this.#beneath = beneath;
    this.#stopBeneath = beneath?.on("change", () => this.#schedule()) ?? (() => {});
    this.#ground = baseStateOf(beneath);
    this.#basis = { naming, servers };
    this.#naming = this.#makeNaming();
    this.#resourceUris = new PublicUris(servers, (uri) => beneath?.findResource(uri) !== undefined);
    this.#templateUris = new PublicUris(servers, (uri) => beneath?.findTemplate(uri) !== undefined);
    this.#tables = this.#build();
    this.#snapshot = new Snapshot(0, this.#tables);
  }

  on<Name extends keyof CatalogEvents>(name: Name, listener: (event: CatalogEvents[Name]) => void): () => void {
    return this.#emitter.on(name, listener);
  }

  /** Takes up another template, or other servers or another order of them; sources are added and removed apart. */
  configure({ naming = DEFAULT_NAMING, servers }: CatalogOptions): void {
    const isSame = naming === this.#basis.naming && isSamePatterns(servers, this.#basis.servers);
    this.#basis = { naming, servers };
    if (!isSame) {
      this.#naming = this.#makeNaming();
      this.#resourceUris.rank(servers);
      this.#templateUris.rank(servers);
    }
    this.#schedule();
    if (!isSame) this.#emitter.emit("naming", undefined);
  }

  setSources(sources: readonly Source[]): void {
    const wanted = new Set(sources);
    for (const { source } of this.#entries.values()) if (!wanted.has(source)) this.removeSource(source.id);
    for (const source of wanted) if (this.#entries.get(source.id)?.source !== source) this.addSource(source);
  }

  /** A server that the constructor was not told of is treated as configured last, from now on. */
  addSource(source: Source): void {
    if (this.#entries.has(source.id)) {
      throw new ToolcribError("conflict", `A source with the id ${source.id} already exists.`);
    }
    const { naming, servers } = this.#basis;
    if (source.kind === "server" && !servers.some((server) => server.id === source.id)) {
      this.#basis = { naming, servers: [...servers, { id: source.id }] };
      this.#naming = this.#makeNaming();
      this.#emitter.emit("naming", undefined);
    }
    this.#enter(source, undefined);
  }

  /** Puts another object in the place of the source with the same id: one version, in which the rest stays as it was. */
  replaceSource(source: Source): void {
    const before = this.#entries.get(source.id);
    if (before === undefined) return this.addSource(source);
    before.stopListening();
    this.#enter(source, before.view);
  }

  removeSource(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.stopListening();
    this.#entries.delete(id);
    this.#resourceUris.forget(id);
    this.#templateUris.forget(id);
    this.#schedule();
  }

  snapshot(): Snapshot {
    this.#refresh();
    return this.#snapshot;
  }

  find(name: string): ToolCapability | undefined {
    return this.snapshot().find(name);
  }

  findPrompt(name: string): PromptCapability | undefined {
    return this.snapshot().findPrompt(name);
  }

  /** What is listed or fits a template; of a URI that names its server also what is not. */
  findResource(uri: string): ResourceRoute | undefined {
    const snapshot = this.snapshot();
    const found = snapshot.findResource(uri);
    if (found !== undefined) return found;
    const mapped = splitMappedUri(uri);
    if (mapped === undefined || this.source(mapped.source)?.kind !== "server") return undefined;
    return snapshot.findMapped(mapped.source, mapped.uri);
  }

  findTemplate(uriTemplate: string): TemplateCapability | undefined {
    return this.snapshot().findTemplate(uriTemplate);
  }

  publicUri(source: string, uri: string): string {
    return this.snapshot().publicUri(source, uri);
  }

  source(id: string): Source | undefined {
    return this.#entries.get(id)?.source;
  }

  /** What is kept out of the catalog, and why. */
  quarantined(): readonly Quarantined[] {
    this.#refresh();
    return this.#quarantined;
  }

  get basis(): NamingBasis {
    return this.#basis;
  }

  /** What is odd about the configured names, for a person. */
  namingWarnings(): string[] {
    return this.#naming.warnings();
  }

  /** Stops listening to sources and tells nobody anything any more. */
  close(): void {
    this.#emitter.clear();
    this.#stopBeneath();
    for (const entry of this.#entries.values()) entry.stopListening();
  }

  /** @param view What the source that it replaces offered: equal definitions keep their capabilities. */
  #enter(source: Source, view: SourceView | undefined): void {
    const entry: Entry = { source, view, isDirty: true, stopListening: () => {} };
    this.#entries.set(source.id, entry);
    entry.stopListening = source.onChange(() => {
      entry.isDirty = true;
      this.#schedule();
    });
    this.#schedule();
  }

  #schedule(): void {
    this.#isStale = true;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#refresh();
      const [warnings, changes] = [this.#warnings, this.#changes];
      this.#warnings = [];
      this.#changes = [];
      for (const warning of warnings) this.#emitter.emit("warning", warning);
      for (const change of changes) this.#emitter.emit("change", change);
    });
  }

  #refresh(): void {
    const isMoved = this.#beneath !== undefined && this.#takeGround(this.#beneath);
    if (!this.#isStale && !isMoved) return;
    this.#isStale = false;
    for (const entry of this.#entries.values()) if (entry.isDirty) this.#read(entry);
    const tables = this.#build();
    const change = compareTables(this.#tables, tables, this.#snapshot.version + 1);
    if (change === undefined) return;
    this.#tables = tables;
    this.#snapshot = new Snapshot(change.version, tables);
    this.#changes.push(change);
    // Who hears of it only when the hub's changed has to be told as well.
    if (isMoved) this.#schedule();
  }

  /** Whether the hub's catalog is other than it was when names were last made. */
  #takeGround(beneath: Catalog): boolean {
    const before = this.#ground;
    const snapshot = beneath.snapshot();
    if (before?.snapshot === snapshot && before.basis === beneath.basis) return false;
    this.#ground = baseStateOf(beneath);
    if (before?.basis !== beneath.basis) this.#naming = this.#makeNaming();
    this.#resourceUris.renew();
    this.#templateUris.renew();
    return true;
  }

  #makeNaming(): Naming {
    const { naming, servers } = this.#basis;
    const hosts = this.#beneath?.basis;
    return hosts === undefined ? new Naming(naming, servers) : new Naming(hosts.naming, servers, hosts.servers);
  }

  /** Takes up what a source offers now. */
  #read(entry: Entry): void {
    entry.isDirty = false;
    const { source, view: before } = entry;
    const definitions = source.definitions();
    const view = viewSource(source, definitions, before);
    entry.view = view;
    // A source that offers nothing at all is down rather than changed, and keeps its claims for when it is back.
    if (!isEmptyOffer(definitions)) {
      this.#resourceUris.offer(source.id, view.resource.accepted);
      this.#templateUris.offer(source.id, view.template.accepted);
    }
    for (const kind of KINDS) {
      for (const name of view[kind].duplicates) {
        if (before?.[kind].duplicates.includes(name) === true) continue;
        this.#warnings.push({
          source: source.id,
          message: `${source.id} lists the ${kind} ${name} twice; the last one is used.`,
        });
      }
    }
  }

  #build(): Tables {
    const tables: Tables = {
      tool: this.#builders.tool.build(this.#toolNames.of(this.#offers("tool"), this.#naming, this.#ground?.taken.tool)),
      resource: this.#builders.resource.build(uriContributions(this.#offers("resource"), this.#resourceUris)),
      template: this.#builders.template.build(uriContributions(this.#offers("template"), this.#templateUris)),
      prompt: this.#builders.prompt.build(
        this.#promptNames.of(this.#offers("prompt"), this.#naming, this.#ground?.taken.prompt),
      ),
    };
    this.#quarantined = Object.freeze(
      KINDS.flatMap((kind) => [
        ...this.#inOrder().flatMap(({ view }) => view?.[kind].quarantined ?? []),
        ...this.#builders[kind].clashes,
      ]),
    );
    return tables;
  }

  #offers<K extends Kind>(kind: K): SourceOffer<K>[] {
    return this.#inOrder().flatMap(({ source, view }) =>
      view === undefined ? [] : [{ source, accepted: view[kind].accepted }],
    );
  }

  /** Servers as configured, then in-process sources. */
  #inOrder(): Entry[] {
    const servers = this.#basis.servers.map(({ id }) => this.#entries.get(id)).filter((entry) => entry !== undefined);
    return [...servers, ...[...this.#entries.values()].filter((entry) => entry.source.kind !== "server")];
  }
}

function baseStateOf(beneath: Catalog | undefined): BaseState | undefined {
  if (beneath === undefined) return undefined;
  const snapshot = beneath.snapshot();
  const tool = { has: (name: string) => snapshot.find(name) !== undefined };
  const prompt = { has: (name: string) => snapshot.findPrompt(name) !== undefined };
  return { snapshot, basis: beneath.basis, taken: { tool, prompt } };
}

/** Whether every server has the same pattern of names; in which order they stand does not matter. */
function isSamePatterns(a: readonly NamedServer[], b: readonly NamedServer[]): boolean {
  const known = new Map(b.map((server) => [server.id, server]));
  return (
    a.length === b.length &&
    a.every(({ id, toolPrefix, shownAs, fromProject }) => {
      const same = known.get(id);
      if (same === undefined || same.fromProject !== fromProject) return false;
      return same.toolPrefix === toolPrefix && same.shownAs === shownAs;
    })
  );
}

function isEmptyOffer({ tools, resources, templates, prompts }: Definitions): boolean {
  return tools.length + resources.length + templates.length + prompts.length === 0;
}

/** From public names to what they stand for: of the hub, or of the hub and a session together. */
export interface CatalogReader {
  find(name: string): ToolCapability | undefined;
  findPrompt(name: string): PromptCapability | undefined;
  /** What is listed or fits a template; of a URI that names its server also what is not. */
  findResource(uri: string): ResourceRoute | undefined;
  findTemplate(uriTemplate: string): TemplateCapability | undefined;
  /** The public form of a source's own URI. */
  publicUri(source: string, uri: string): string;
  source(id: string): Source | undefined;
}

/** The capabilities of a session on top of the hub's catalog. The hub's come first, so none of them is shadowed. */
export class LayeredCatalog implements CatalogReader {
  readonly #beneath: Catalog;
  readonly #own: Catalog;

  /** @param own Made with the hub's as the one that it stands on. */
  constructor(beneath: Catalog, own: Catalog) {
    this.#beneath = beneath;
    this.#own = own;
  }

  find(name: string): ToolCapability | undefined {
    return this.#beneath.find(name) ?? this.#own.find(name);
  }

  findPrompt(name: string): PromptCapability | undefined {
    return this.#beneath.findPrompt(name) ?? this.#own.findPrompt(name);
  }

  findResource(uri: string): ResourceRoute | undefined {
    return this.#beneath.findResource(uri) ?? this.#own.findResource(uri);
  }

  findTemplate(uriTemplate: string): TemplateCapability | undefined {
    return this.#beneath.findTemplate(uriTemplate) ?? this.#own.findTemplate(uriTemplate);
  }

  publicUri(source: string, uri: string): string {
    if (this.#own.source(source) === undefined) return this.#beneath.publicUri(source, uri);
    const given = this.#own.publicUri(source, uri);
    return given === uri && this.#beneath.findResource(uri) !== undefined ? mappedUri(source, uri) : given;
  }

  source(id: string): Source | undefined {
    return this.#beneath.source(id) ?? this.#own.source(id);
  }
}
