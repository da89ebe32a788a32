import type {
  Capability,
  PromptCapability,
  ResourceCapability,
  TemplateCapability,
  ToolCapability,
} from "../model/capability.ts";
import { isSameCapability, type Kind, KINDS, type KindTable } from "./kind-table.ts";
import { isOwnScheme, mappedUri } from "./public-uris.ts";
import { UriTemplate } from "./uri-template.ts";

export interface Tables {
  readonly tool: KindTable<ToolCapability>;
  readonly resource: KindTable<ResourceCapability>;
  readonly template: KindTable<TemplateCapability>;
  readonly prompt: KindTable<PromptCapability>;
}

/** The source that can read a public URI, and the URI at that source. */
export interface ResourceRoute {
  /** The listed resource, the matching template, or a placeholder for an unlisted resource. */
  readonly capability: ResourceCapability | TemplateCapability;
  readonly source: string;
  readonly uri: string;
}

interface ParsedTemplate {
  readonly capability: TemplateCapability;
  /** Of the public template; it differs from the source's own only by a fixed beginning. */
  readonly shape: UriTemplate;
}

/**
 * The catalog at one version; never changes. Order: servers as configured, then in-process tools, each source in its
 * own order. It is the only map from public name to origin: names are never parsed back.
 */
export class Snapshot {
  readonly version: number;
  readonly tools: readonly ToolCapability[];
  readonly resources: readonly ResourceCapability[];
  readonly templates: readonly TemplateCapability[];
  readonly prompts: readonly PromptCapability[];
  readonly #tables: Tables;

  constructor(version: number, tables: Tables) {
    this.version = version;
    this.tools = tables.tool.list;
    this.resources = tables.resource.list;
    this.templates = tables.template.list;
    this.prompts = tables.prompt.list;
    this.#tables = tables;
    Object.freeze(this);
  }

  find(name: string): ToolCapability | undefined {
    return this.#tables.tool.byName.get(name);
  }

  findPrompt(name: string): PromptCapability | undefined {
    return this.#tables.prompt.byName.get(name);
  }

  findTemplate(uriTemplate: string): TemplateCapability | undefined {
    return this.#tables.template.byName.get(uriTemplate);
  }

  /** A listed resource, or else the template that fixes most of the URI. */
  findResource(uri: string): ResourceRoute | undefined {
    const listed = this.#tables.resource.byName.get(uri);
    if (listed !== undefined) return { capability: listed, source: listed.origin.source, uri: listed.origin.name };
    let steps = 0;
    for (const { capability, shape } of parsedTemplates(this.#tables.template)) {
      steps += shape.cost(uri);
      if (steps > MAX_TEMPLATE_STEPS) return undefined;
      if (!shape.matches(uri)) continue;
      const prefixLength = capability.name.length - capability.origin.name.length;
      return { capability, source: capability.origin.source, uri: uri.slice(prefixLength) };
    }
    return undefined;
  }

  /**
   * The public form of a server's own URI, for results and updates that mention a resource. Whether it is listed
   * or not, `findResource` of the public form never leads to another server.
   */
  publicUri(source: string, uri: string): string {
    const listed = byOrigin(this.#tables.resource).get(source)?.get(uri);
    if (listed !== undefined) return listed.name;
    const template = this.#templateOf(source, uri);
    if (template !== undefined && template.uri !== uri) return template.uri;
    const claimant = this.findResource(uri)?.source ?? source;
    return isOwnScheme(uri) || claimant !== source ? mappedUri(source, uri) : uri;
  }

  /**
   * The route for a URI that names its source. Undefined if a template matches and the URI has another public form:
   * rules apply to that one.
   */
  findMapped(source: string, uri: string): ResourceRoute | undefined {
    const listed = byOrigin(this.#tables.resource).get(source)?.get(uri);
    if (listed !== undefined) return { capability: listed, source, uri };
    const template = this.#templateOf(source, uri);
    if (template === undefined) return unlistedRoute(source, uri, mappedUri(source, uri));
    const isPublic = this.publicUri(source, uri) === mappedUri(source, uri);
    return isPublic ? { capability: template.capability, source, uri } : undefined;
  }

  /** The source's own template that fits its own URI, and the URI in the template's public form. */
  #templateOf(source: string, uri: string): { capability: TemplateCapability; uri: string } | undefined {
    let steps = 0;
    for (const { capability, shape } of parsedTemplates(this.#tables.template)) {
      if (capability.origin.source !== source) continue;
      const prefix = capability.name.slice(0, capability.name.length - capability.origin.name.length);
      steps += shape.cost(prefix + uri);
      if (steps > MAX_TEMPLATE_STEPS) return undefined;
      if (shape.matches(prefix + uri)) return { capability, uri: prefix + uri };
    }
    return undefined;
  }
}

/**
 * For all templates that are tried for one URI. Thousands of short templates and URIs fit in; a server that lists as many as it
 * can, for URIs as long as they may be, must not keep the hub busy.
 */
const MAX_TEMPLATE_STEPS = 1_000_000;

/** An unlisted resource, as rules see it. */
export function unlistedRoute(source: string, uri: string, publicUri: string): ResourceRoute {
  const definition = { uri, name: uri };
  return {
    capability: { kind: "resource", name: publicUri, origin: { source, name: uri }, definition, fingerprint: "" },
    source,
    uri,
  };
}

/** Both are made when first needed, and live as long as the table, which several versions may share. */
const templatesOf = new WeakMap<KindTable<TemplateCapability>, readonly ParsedTemplate[]>();
const originsOf = new WeakMap<KindTable<ResourceCapability>, Map<string, Map<string, ResourceCapability>>>();

function parsedTemplates(table: KindTable<TemplateCapability>): readonly ParsedTemplate[] {
  let ready = templatesOf.get(table);
  if (ready === undefined) {
    ready = table.list
      .flatMap((capability) => {
        const shape = UriTemplate.parse(capability.name);
        return shape === undefined ? [] : [{ capability, shape }];
      })
      .toSorted((a, b) => b.shape.literalLength - a.shape.literalLength);
    templatesOf.set(table, ready);
  }
  return ready;
}

function byOrigin(table: KindTable<ResourceCapability>): Map<string, Map<string, ResourceCapability>> {
  let origins = originsOf.get(table);
  if (origins === undefined) {
    origins = new Map();
    for (const capability of table.list) {
      let ofSource = origins.get(capability.origin.source);
      if (ofSource === undefined) origins.set(capability.origin.source, (ofSource = new Map()));
      ofSource.set(capability.origin.name, capability);
    }
    originsOf.set(table, origins);
  }
  return origins;
}

/** How one version differs from the one before. Names are public, of all kinds together. */
export interface CatalogChange {
  readonly version: number;
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Same name, other definition or other origin. */
  readonly changed: readonly string[];
  /** The kinds whose lists differ; also those where only the order does. */
  readonly kinds: readonly Kind[];
}

/** Undefined if nothing differs. */
export function compareTables(before: Tables, after: Tables, version: number): CatalogChange | undefined {
  const added: string[] = [];
  const removed: string[] = [];
  const changed: string[] = [];
  const kinds: Kind[] = [];
  for (const kind of KINDS) {
    const [old, next]: [KindTable<Capability>, KindTable<Capability>] = [before[kind], after[kind]];
    if (isSameList(old.list, next.list)) continue;
    kinds.push(kind);
    for (const capability of next.list) {
      const previous = old.byName.get(capability.name);
      if (previous === undefined) added.push(capability.name);
      else if (!isSameCapability(previous, capability)) changed.push(capability.name);
    }
    for (const capability of old.list) if (!next.byName.has(capability.name)) removed.push(capability.name);
  }
  return kinds.length === 0 ? undefined : { version, added, removed, changed, kinds };
}

function isSameList(a: readonly Capability[], b: readonly Capability[]): boolean {
  if (a === b) return true;
  return a.length === b.length && a.every((capability, i) => isSame(capability, b[i]));
}

function isSame(a: Capability, b: Capability | undefined): boolean {
  return b !== undefined && isSameCapability(a, b);
}
