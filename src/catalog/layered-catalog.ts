/** What a session brings, laid over the hub's catalog. The hub comes first in everything, so nothing of it is shadowed. */
import type { PromptCapability, TemplateCapability, ToolCapability } from "../model/capability.ts";
import type { Source } from "../model/source.ts";
import type { Catalog } from "./catalog.ts";
import type { CatalogReader } from "./catalog-reader.ts";
import { mappedUri } from "./public-uris.ts";
import type { ResourceRoute } from "./snapshot.ts";

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
