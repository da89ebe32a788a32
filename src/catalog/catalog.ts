/** The Catalog: every capability of every Source under its public name, in versions. */
import { isDeepStrictEqual } from "node:util";
import { Emitter } from "../base/emitter.ts";
import type { PromptCapability, TemplateCapability, ToolCapability } from "../model/capability.ts";
import { DEFAULT_NAMING } from "../model/config.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Overrides } from "../model/server-spec.ts";
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
import { describeMisfit, misfitOf, strayOverrides } from "./overrides.ts";
import { describeQuarantined, type Quarantined } from "./quarantine.ts";
import { type CatalogChange, compareTables, type ResourceRoute, Snapshot, type Tables } from "./snapshot.ts";

interface CatalogOptions {
  /** Template of public names. */
  readonly naming?: string;
  /** Every configured server in the config's order, also those that are disabled or down. */
  readonly servers: readonly NamedServer[];
}

/** The inputs of naming; a new object when names may change. */
interface NamingBasis {
  readonly naming: string;
  readonly servers: readonly NamedServer[];
}

/** The hub's catalog as the catalog of a session last saw it. */
interface BaseState {
  readonly snapshot: Snapshot;
  readonly basis: NamingBasis;
  readonly taken: Readonly<Record<"tool" | "prompt", TakenNames>>;
}

interface CatalogEvents {
  /** Once for every version, in a microtask after it came about; for in-process tools, in a later turn of the event loop. */
  change: CatalogChange;
  warning: { readonly source: string; readonly message: string };
  /** The inputs of naming changed. Emitted immediately, before there is a version with the new names. */
  naming: undefined;
}

interface Entry {
  readonly source: Source;
  stopListening(): void;
  view: SourceView | undefined;
  isDirty: boolean;
}

/**
 * Programs register in-process tools one by one, often with an `await` in between. What follows a version takes time in
 * proportion to the size of the catalog, so that a version for each tool would take the square of it. Their changes
 * therefore wait for the next turn, and while versions come faster than that, until publishing takes this share of the time.
 */
const PUBLISHING_SHARE = 1 / 5;
const MAX_DELAY_MS = 250;
/** Of definitions of one source that are left out together, how many have a warning each, and how many share one. */
const MAX_WARNED = 5;
const MAX_NAMED = 20;

/**
 * Changes of sources are applied lazily: in a microtask, so that a burst makes one version, or when the catalog is
 * read. Only the source that changed is read again, and only its definitions that are new objects.
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
  readonly #base: Catalog | undefined;
  readonly #stopBase: () => void;
  #baseState: BaseState | undefined;
  #basis: NamingBasis;
  #naming: Naming;
  #tables: Tables;
  #snapshot: Snapshot;
  #quarantined: readonly Quarantined[] = [];
  /** Fingerprints of tools whose override does not fit. */
  #held: ReadonlyMap<string, string> = new Map();
  #isStale = false;
  #isScheduled = false;
  #stopWaiting: (() => void) | undefined;
  /** When the next change of in-process tools may be published, by `performance.now`. */
  #nextAt = 0;
  #changes: CatalogChange[] = [];
  #warnings: CatalogEvents["warning"][] = [];

  /** @param base The hub's catalog, for the catalog of a session: names do not clash with the hub's, whose template applies. */
  constructor({ naming = DEFAULT_NAMING, servers }: CatalogOptions, base?: Catalog) {
    this.#base = base;
    this.#stopBase = base?.on("change", () => this.#schedule()) ?? (() => {});
    this.#baseState = baseStateOf(base);
    this.#basis = { naming, servers };
    this.#naming = this.#makeNaming();
    this.#resourceUris = new PublicUris(servers, (uri) => base?.findResource(uri) !== undefined);
    this.#templateUris = new PublicUris(servers, (uri) => base?.findTemplate(uri) !== undefined);
    this.#tables = this.#build();
    this.#snapshot = new Snapshot(0, this.#tables);
  }

  on<Name extends keyof CatalogEvents>(name: Name, listener: (event: CatalogEvents[Name]) => void): () => void {
    return this.#emitter.on(name, listener);
  }

  /** Applies another template, other servers or another order; sources are added and removed separately. */
  configure({ naming = DEFAULT_NAMING, servers }: CatalogOptions): void {
    const before = this.#basis;
    const isSame = naming === before.naming && isSamePatterns(servers, before.servers);
    if (isSame && servers.every(({ id }, i) => id === before.servers[i]?.id)) return;
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

  /** A server that the constructor did not get is treated as configured last. */
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

  /** Replaces the source with the same id in one version, in which everything else stays the same. */
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

  /** A listed resource or a matching template; for a URI that names its server, also an unlisted resource. */
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

  /** Definitions that are not in the catalog, with the reason. */
  quarantined(): readonly Quarantined[] {
    this.#refresh();
    return this.#quarantined;
  }

  get basis(): NamingBasis {
    return this.#basis;
  }

  /** Warnings about the configured names, for people. */
  namingWarnings(): string[] {
    return this.#naming.warnings();
  }

  /** Stops listening to sources and emits no more events. */
  close(): void {
    this.#emitter.clear();
    this.#stopBase();
    this.#stopWaiting?.();
    for (const entry of this.#entries.values()) entry.stopListening();
  }

  /** @param view The view of the source that it replaces: equal definitions keep their capabilities. */
  #enter(source: Source, view: SourceView | undefined): void {
    const entry: Entry = { source, view, isDirty: true, stopListening: () => {} };
    this.#entries.set(source.id, entry);
    entry.stopListening = source.onChange(() => {
      entry.isDirty = true;
      if (source.kind === "local") this.#scheduleLater();
      else this.#schedule();
    });
    this.#schedule();
  }

  #schedule(): void {
    this.#isStale = true;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => this.#publish());
  }

  #scheduleLater(): void {
    this.#isStale = true;
    if (this.#isScheduled || this.#stopWaiting !== undefined) return;
    const ms = Math.min(this.#nextAt - performance.now(), MAX_DELAY_MS);
    if (ms > 0) {
      const timer = setTimeout(() => this.#publish(), ms);
      this.#stopWaiting = () => clearTimeout(timer);
    } else {
      const turn = setImmediate(() => this.#publish());
      this.#stopWaiting = () => clearImmediate(turn);
    }
  }

  #publish(): void {
    const begun = performance.now();
    this.#isScheduled = false;
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
    this.#refresh();
    const [warnings, changes] = [this.#warnings, this.#changes];
    this.#warnings = [];
    this.#changes = [];
    for (const warning of warnings) this.#emitter.emit("warning", warning);
    for (const change of changes) this.#emitter.emit("change", change);
    const now = performance.now();
    this.#nextAt = now + (now - begun) * (1 / PUBLISHING_SHARE - 1);
  }

  #refresh(): void {
    const isMoved = this.#base !== undefined && this.#updateBaseState(this.#base);
    if (!this.#isStale && !isMoved) return;
    this.#isStale = false;
    for (const entry of this.#entries.values()) if (entry.isDirty) this.#read(entry);
    const tables = this.#build();
    const change = compareTables(this.#tables, tables, this.#snapshot.version + 1);
    if (change === undefined) return;
    this.#tables = tables;
    this.#snapshot = new Snapshot(change.version, tables);
    this.#changes.push(change);
    // Listeners of this catalog must also learn of changes that come from the hub's.
    if (isMoved) this.#schedule();
  }

  /** Whether the hub's catalog changed since names were last assigned. */
  #updateBaseState(base: Catalog): boolean {
    const before = this.#baseState;
    const snapshot = base.snapshot();
    if (before?.snapshot === snapshot && before.basis === base.basis) return false;
    this.#baseState = baseStateOf(base);
    if (before?.basis !== base.basis) this.#naming = this.#makeNaming();
    this.#resourceUris.renew();
    this.#templateUris.renew();
    return true;
  }

  #makeNaming(): Naming {
    const { naming, servers } = this.#basis;
    const hosts = this.#base?.basis;
    return hosts === undefined ? new Naming(naming, servers) : new Naming(hosts.naming, servers, hosts.servers);
  }

  /** Reads what a source offers now. */
  #read(entry: Entry): void {
    entry.isDirty = false;
    const { source, view: before } = entry;
    const definitions = source.definitions();
    const view = viewSource(source, definitions, before);
    entry.view = view;
    // A source that offers nothing at all is probably down, and keeps its claims until it is back.
    if (!isEmptyOffer(definitions)) {
      this.#resourceUris.offer(source.id, view.resource.accepted);
      this.#templateUris.offer(source.id, view.template.accepted);
    }
    for (const name of strayOverrides(this.#overridesOf(source.id)?.overrides, view.tool.accepted)) {
      if (before?.tool.accepted.some((tool) => tool.name === name) === false || view.tool.accepted.length === 0)
        continue;
      this.#warnings.push({
        source: source.id,
        message: `${source.id} has no tool ${name}, which the config overrides.`,
      });
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
    const entries = this.#inOrder();
    const taken = this.#baseState?.taken;
    const tables: Tables = {
      tool: this.#builders.tool.build(
        this.#toolNames.of(offersOf("tool", entries), this.#naming, taken?.tool, (id) => this.#overridesOf(id)),
      ),
      resource: this.#builders.resource.build(uriContributions(offersOf("resource", entries), this.#resourceUris)),
      template: this.#builders.template.build(uriContributions(offersOf("template", entries), this.#templateUris)),
      prompt: this.#builders.prompt.build(
        this.#promptNames.of(offersOf("prompt", entries), this.#naming, taken?.prompt),
      ),
    };
    const before = new Set(this.#quarantined.map(quarantineKey));
    this.#quarantined = Object.freeze(
      KINDS.flatMap((kind) => [
        ...entries.flatMap(({ view }) => view?.[kind].quarantined ?? []),
        ...this.#builders[kind].clashes,
      ]),
    );
    const fresh = this.#quarantined.filter((each) => !before.has(quarantineKey(each)));
    for (const [source, leftOut] of Map.groupBy(fresh, (each) => each.source)) this.#warnLeftOut(source, leftOut);
    this.#warnMisfits(tables.tool.list);
    return tables;
  }

  #overridesOf(id: string): { readonly overrides: Overrides; readonly where: string } | undefined {
    const server = this.#basis.servers.find((each) => each.id === id);
    const where = server?.origin === undefined ? `server ${id}` : `${server.origin.file} (server ${id})`;
    return server?.overrides && { overrides: server.overrides, where };
  }

  #warnMisfits(tools: readonly ToolCapability[]): void {
    const held = new Map<string, string>();
    for (const tool of tools) {
      const found = misfitOf(tool);
      if (found !== undefined) held.set(`${tool.origin.source} ${tool.origin.name}`, tool.fingerprint);
      if (found === undefined || this.#held.get(`${tool.origin.source} ${tool.origin.name}`) === tool.fingerprint)
        continue;
      this.#warnings.push({ source: tool.origin.source, message: describeMisfit(tool.name, found) });
    }
    this.#held = held;
  }

  #warnLeftOut(source: string, leftOut: readonly Quarantined[]): void {
    for (const each of leftOut.slice(0, MAX_WARNED)) {
      this.#warnings.push({ source, message: describeQuarantined(each) });
    }
    const rest = leftOut.slice(MAX_WARNED);
    if (rest.length === 0) return;
    const named = rest
      .slice(0, MAX_NAMED)
      .map(({ kind, name, reason }) => `${kind} ${JSON.stringify(name.slice(0, 80))} (${reason})`);
    const more = rest.length > MAX_NAMED ? ` and ${rest.length - MAX_NAMED} more` : "";
    this.#warnings.push({ source, message: `Also not offered: ${named.join(", ")}${more}` });
  }

  /** Servers as configured, then in-process sources. */
  #inOrder(): Entry[] {
    const servers = this.#basis.servers.map(({ id }) => this.#entries.get(id)).filter((entry) => entry !== undefined);
    return [...servers, ...[...this.#entries.values()].filter((entry) => entry.source.kind !== "server")];
  }
}

function quarantineKey({ source, kind, name, reason }: Quarantined): string {
  return JSON.stringify([source, kind, name, reason]);
}

function offersOf<K extends Kind>(kind: K, entries: readonly Entry[]): SourceOffer<K>[] {
  return entries.flatMap(({ source, view }) => (view === undefined ? [] : [{ source, accepted: view[kind].accepted }]));
}

function baseStateOf(base: Catalog | undefined): BaseState | undefined {
  if (base === undefined) return undefined;
  const snapshot = base.snapshot();
  const tool = { has: (name: string) => snapshot.find(name) !== undefined };
  const prompt = { has: (name: string) => snapshot.findPrompt(name) !== undefined };
  return { snapshot, basis: base.basis, taken: { tool, prompt } };
}

/** Whether every server has the same pattern of names, in any order. */
function isSamePatterns(a: readonly NamedServer[], b: readonly NamedServer[]): boolean {
  const known = new Map(b.map((server) => [server.id, server]));
  return (
    a.length === b.length &&
    a.every(({ id, toolPrefix, shownAs, fromProject, overrides }) => {
      const same = known.get(id);
      if (same === undefined || same.fromProject !== fromProject) return false;
      if (!isDeepStrictEqual(same.overrides, overrides)) return false;
      return same.toolPrefix === toolPrefix && same.shownAs === shownAs;
    })
  );
}

function isEmptyOffer({ tools, resources, templates, prompts }: Definitions): boolean {
  return tools.length + resources.length + templates.length + prompts.length === 0;
}

/** Resolves public names: of the hub, or of the hub and a session together. */
export interface CatalogReader {
  find(name: string): ToolCapability | undefined;
  findPrompt(name: string): PromptCapability | undefined;
  /** A listed resource or a matching template; for a URI that names its server, also an unlisted resource. */
  findResource(uri: string): ResourceRoute | undefined;
  findTemplate(uriTemplate: string): TemplateCapability | undefined;
  /** The public form of a source's own URI. */
  publicUri(source: string, uri: string): string;
  source(id: string): Source | undefined;
}

/** The capabilities of a session on top of the hub's catalog. The hub's come first, so none of them is shadowed. */
export class LayeredCatalog implements CatalogReader {
  readonly #base: Catalog;
  readonly #own: Catalog;

  /** @param own Created with the hub's catalog as its base. */
  constructor(base: Catalog, own: Catalog) {
    this.#base = base;
    this.#own = own;
  }

  find(name: string): ToolCapability | undefined {
    return this.#base.find(name) ?? this.#own.find(name);
  }

  findPrompt(name: string): PromptCapability | undefined {
    return this.#base.findPrompt(name) ?? this.#own.findPrompt(name);
  }

  findResource(uri: string): ResourceRoute | undefined {
    return this.#base.findResource(uri) ?? this.#own.findResource(uri);
  }

  findTemplate(uriTemplate: string): TemplateCapability | undefined {
    return this.#base.findTemplate(uriTemplate) ?? this.#own.findTemplate(uriTemplate);
  }

  publicUri(source: string, uri: string): string {
    if (this.#own.source(source) === undefined) return this.#base.publicUri(source, uri);
    const given = this.#own.publicUri(source, uri);
    return given === uri && this.#base.findResource(uri) !== undefined ? mappedUri(source, uri) : given;
  }

  source(id: string): Source | undefined {
    return this.#base.source(id) ?? this.#own.source(id);
  }
}
