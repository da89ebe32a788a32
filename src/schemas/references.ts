/** Finds what a `$ref` points at inside one schema document. Nothing outside of it is ever fetched. */
import { isJsonObject, type JsonObject } from "../model/json.ts";
import { MAX_DEPTH } from "./copy.ts";

export interface Target {
  /** An object or a boolean, as found. */
  readonly schema: unknown;
  /** What `#` means inside the target. */
  readonly base: JsonObject;
}

export class References {
  readonly #root: JsonObject;
  #index: { readonly ids: Map<string, JsonObject>; readonly anchors: Map<string, JsonObject> } | undefined;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  resolve(reference: string, base: JsonObject): Target | undefined {
    const hash = reference.indexOf("#");
    const uri = hash < 0 ? reference : reference.slice(0, hash);
    const fragment = hash < 0 ? "" : decode(reference.slice(hash + 1));
    const document = uri === "" ? base : this.#byId(uri);
    if (document === undefined || fragment === undefined) return undefined;
    if (fragment === "") return { schema: document, base: document };
    if (fragment.startsWith("/")) return follow(fragment, document);
    const schema = this.#indexed().anchors.get(fragment);
    return schema && { schema, base: document };
  }

  #byId(uri: string): JsonObject | undefined {
    const { ids } = this.#indexed();
    const rootId = this.#root["$id"];
    const absolute = typeof rootId === "string" && URL.canParse(uri, rootId) ? new URL(uri, rootId).href : uri;
    return ids.get(uri) ?? ids.get(absolute);
  }

  /** Built when first asked for, since few schemas use ids or anchors. */
  #indexed(): { readonly ids: Map<string, JsonObject>; readonly anchors: Map<string, JsonObject> } {
    if (this.#index !== undefined) return this.#index;
    const index = { ids: new Map<string, JsonObject>(), anchors: new Map<string, JsonObject>() };
    const rootId = this.#root["$id"];
    const visit = (value: unknown, depth: number): void => {
      if (depth > MAX_DEPTH) return;
      if (Array.isArray(value)) for (const item of value) visit(item, depth + 1);
      if (!isJsonObject(value)) return;
      const { $id, $anchor, $dynamicAnchor } = value;
      for (const anchor of [$anchor, $dynamicAnchor]) {
        if (typeof anchor === "string" && !index.anchors.has(anchor)) index.anchors.set(anchor, value);
      }
      if (typeof $id === "string") {
        if ($id.startsWith("#")) index.anchors.set($id.slice(1), value);
        else index.ids.set($id, value);
        if (typeof rootId === "string" && URL.canParse($id, rootId)) index.ids.set(new URL($id, rootId).href, value);
      }
      for (const inner of Object.values(value)) visit(inner, depth + 1);
    };
    visit(this.#root, 0);
    this.#index = index;
    return index;
  }
}

function follow(pointer: string, document: JsonObject): Target | undefined {
  let here: unknown = document;
  let base = document;
  for (const step of pointer.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, name)) return undefined;
    // Own keys only, of objects and arrays alike.
    here = (here as JsonObject)[name];
    if (isJsonObject(here) && typeof here["$id"] === "string") base = here;
  }
  return isJsonObject(here) || typeof here === "boolean" ? { schema: here, base } : undefined;
}

function decode(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return undefined;
  }
}
