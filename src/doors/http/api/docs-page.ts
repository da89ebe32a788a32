/** The OpenAPI document as a web page. */
import { hash } from "node:crypto";
import { API_PATH } from "../../../contract/rest.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import { type OpenApiDocument, tagOf } from "./openapi-document.ts";

const DOCS_STYLE = `
:root {
  color-scheme: light dark;
  --text: light-dark(#1c2126, #e3e7ea);
  --soft: light-dark(#5a6570, #9aa5ae);
  --page: light-dark(#ffffff, #14181b);
  --raised: light-dark(#f4f6f7, #1d2327);
  --line: light-dark(#dde2e6, #2e363c);
  --accent: light-dark(#0b62c4, #6fb1ff);
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.55 system-ui, sans-serif; }
a { color: var(--accent); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
code, pre { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
code { overflow-wrap: anywhere; }
.frame { display: grid; grid-template-columns: 17rem minmax(0, 1fr); max-width: 76rem; margin: 0 auto; }
nav { position: sticky; top: 0; align-self: start; height: 100vh; overflow-y: auto; padding: 1.5rem 1rem; }
nav h2 { margin: 1.2rem 0 .3rem; font-size: .78rem; letter-spacing: .06em; text-transform: uppercase; color: var(--soft); }
nav ul { margin: 0; padding: 0; list-style: none; }
nav li { padding: .1rem 0; overflow-wrap: anywhere; }
main { padding: 1.5rem 2rem 6rem; min-width: 0; }
h1 { margin: 0 0 .5rem; font-size: 1.7rem; }
h2.tag { margin: 3rem 0 0; padding-bottom: .4rem; border-bottom: 1px solid var(--line); }
section { padding: 1.5rem 0; border-bottom: 1px solid var(--line); scroll-margin-top: 1rem; }
section h3 { display: flex; flex-wrap: wrap; gap: .6rem; align-items: baseline; margin: 0 0 .4rem; font-size: 1rem; }
h4 { margin: 1.2rem 0 .4rem; font-size: .85rem; color: var(--soft); }
.method { min-width: 4.2rem; font: 600 12px/1.9 ui-monospace, monospace; text-align: center; border-radius: .3rem; border: 1px solid currentColor; }
.get { color: light-dark(#0b62c4, #6fb1ff); }
.post { color: light-dark(#1a7338, #6fd58f); }
.patch { color: light-dark(#8a5a00, #f0b95b); }
.delete { color: light-dark(#b3261e, #ff8f86); }
.scope { font-size: .8rem; color: var(--soft); }
pre { overflow-x: auto; margin: .4rem 0; padding: .8rem 1rem; background: var(--raised); border-radius: .4rem; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .35rem .6rem .35rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { font-size: .8rem; color: var(--soft); font-weight: 500; }
details > summary { cursor: pointer; color: var(--soft); font-size: .85rem; padding: .3rem 0; }
@media (max-width: 50rem) {
  .frame { display: block; }
  nav { position: static; height: auto; }
  main { padding: 1rem; }
}
`;

/** The style is allowed by its hash; nothing else is. */
export const DOCS_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash("sha256", DOCS_STYLE, "base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

interface Entry {
  readonly id: string;
  readonly tag: string;
  readonly method: string;
  readonly path: string;
  readonly operation: JsonObject;
}

/** The document as one page for people, without scripts or other files, in the reader's light or dark scheme. */
export function docsPage(document: OpenApiDocument): string {
  const entries = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Entry => {
      return { id: textIn(operation, "operationId"), tag: tagOf(path), method, path, operation };
    }),
  );
  const byTag = Map.groupBy(entries, ({ tag }) => tag);
  const { schemas } = document.components;
  const info = objectIn(document, "info");
  const page = markup`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>Toolcrib API</title>
        <style>${new Markup(DOCS_STYLE)}</style>
      </head>
      <body>
        <div class="frame">
          <nav aria-label="Operations">
            ${[...byTag].map(
              ([tag, of]) =>
                markup`<h2>${tag}</h2>
                  <ul>
                    ${of.map(link)}
                  </ul>`,
            )}
            <h2>Schemas</h2>
            <ul>
              ${Object.keys(schemas).map((name) => markup`<li><a href="#schema-${name}">${name}</a></li>`)}
            </ul>
          </nav>
          <main>
            <h1>Toolcrib API</h1>
            <p class="scope">Version ${textIn(info, "version")}, <a href="v1/openapi.json">openapi.json</a></p>
            ${prose(textIn(info, "description"))}
            ${[...byTag].map(
              ([tag, of]) =>
                markup`<h2 class="tag">${tag}</h2>
                  ${of.map(section)}`,
            )}
            <h2 class="tag">Schemas</h2>
            ${Object.entries(schemas).map(([name, schema]) => schemaSection(name, schema))}
          </main>
        </div>
      </body>
    </html> `;
  return page.text;
}

function link({ id, operation }: Entry): Markup {
  return markup`<li><a href="#${id}">${inline(textIn(operation, "summary"))}</a></li>`;
}

function section({ id, method, path, operation }: Entry): Markup {
  const scope = operation["x-scope"];
  const needs = typeof scope === "string" ? markup`Scope <code>${scope}</code>. ` : "No token needed. ";
  return markup`<section id="${id}">
    <h3><span class="method ${method}">${method.toUpperCase()}</span><code>${API_PATH}${path}</code></h3>
    <p>${inline(textIn(operation, "summary"))} <span class="scope">${needs}<code>${id}</code></span></p>
    ${parameters(operation)}${requestBody(operation)}${responses(operation)}
  </section> `;
}

function parameters(operation: JsonObject): Markup | undefined {
  const given = listIn(operation, "parameters").filter(isJsonObject);
  if (given.length === 0) return undefined;
  const members = given.map((parameter) => ({
    name: textIn(parameter, "name"),
    schema: { ...objectIn(parameter, "schema"), description: parameter["description"] },
    required: parameter["required"] === true,
  }));
  return markup`<h4>Parameters</h4>
    ${table(members)}`;
}

function requestBody(operation: JsonObject): Markup | undefined {
  const [media] = Object.values(objectIn(operation, "requestBody", "content")).filter(isJsonObject);
  if (media === undefined) return undefined;
  return markup`<h4>Body</h4>
    ${memberTable(media["schema"])}${example(media)}`;
}

function responses(operation: JsonObject): Markup {
  const all = Object.entries(objectIn(operation, "responses"));
  const fine = all.filter(([status]) => Number(status) < 300);
  const errors = all.filter(([status]) => Number(status) >= 400).map(([status]) => status);
  return markup`${fine.map(([status, response]) => responseSection(status, response))}
    <p class="scope">
      Errors: ${errors.map((status, index) => markup`${index === 0 ? "" : ", "}<code>${status}</code>`)}
    </p>`;
}

function responseSection(status: string, response: unknown): Markup {
  const content = isJsonObject(response) ? objectIn(response, "content") : {};
  return markup`${Object.entries(content).map(([type, media]) => {
    if (!isJsonObject(media)) return undefined;
    return markup`<h4>${status} <span class="scope">${type}</span></h4>
      <details>
        <summary>Fields</summary>
        ${memberTable(media["schema"])}
      </details>
      ${example(media)}`;
  })}`;
}

function example({ example: value }: JsonObject): Markup | undefined {
  return value === undefined ? undefined : markup`<pre tabindex="0">${JSON.stringify(value, null, 2)}</pre>`;
}

function schemaSection(name: string, schema: JsonObject): Markup {
  const { description } = schema;
  const hasMembers = isJsonObject(schema["properties"]);
  return markup`<section id="schema-${name}">
    <h3>${name}</h3>
    ${typeof description === "string" ? prose(description) : undefined}
    ${hasMembers ? memberTable(schema) : markup`<p>${typeWords(schema)}</p>`}
  </section> `;
}

function textIn(value: JsonObject, key: string): string {
  const text = value[key];
  return typeof text === "string" ? text : "";
}

function listIn(value: JsonObject, key: string): unknown[] {
  const list = value[key];
  return Array.isArray(list) ? list : [];
}

function objectIn(value: JsonObject, ...path: readonly string[]): JsonObject {
  let found: unknown = value;
  for (const key of path) found = isJsonObject(found) ? found[key] : undefined;
  return isJsonObject(found) ? found : {};
}

const MAX_DEPTH = 4;

/** A JSON Schema as a person reads it: a word for each type, a table for the members of an object. */
function typeWords(schema: unknown): Markup {
  if (!isJsonObject(schema)) return markup`anything`;
  const named = schemaName(schema);
  if (named !== undefined) return markup`<a href="#schema-${named}">${named}</a>`;
  const { type, enum: values, const: only, anyOf, items } = schema;
  if (Array.isArray(values)) return joined(values.map((value) => markup`<code>${JSON.stringify(value)}</code>`));
  if (only !== undefined) return markup`<code>${JSON.stringify(only)}</code>`;
  if (Array.isArray(anyOf)) return joined(anyOf.map(typeWords));
  if (type === "array") return markup`list of ${typeWords(items)}`;
  if (Array.isArray(type)) return joined(type.map((each) => markup`${String(each)}`));
  if (type === "object" && isJsonObject(schema["additionalProperties"]) && schema["properties"] === undefined) {
    return markup`object of ${typeWords(schema["additionalProperties"])}`;
  }
  return typeof type === "string" ? markup`${type}` : markup`anything`;
}

function joined(parts: readonly Markup[]): Markup {
  return markup`${parts.map((part, index) => (index === 0 ? part : markup` or ${part}`))}`;
}

function schemaName({ $ref: reference }: JsonObject): string | undefined {
  return typeof reference === "string" ? reference.split("/").at(-1) : undefined;
}

interface Member {
  readonly name: string;
  readonly schema: unknown;
  readonly required: boolean;
}

function memberTable(schema: unknown): Markup {
  const members = membersOf(schema, "", 0);
  if (members.length === 0) return markup`<p>${typeWords(schema)}</p>`;
  return table(members);
}

export function table(members: readonly Member[]): Markup {
  return markup`<table>
    <thead>
      <tr>
        <th scope="col">Name</th>
        <th scope="col">Type</th>
        <th scope="col">Meaning</th>
      </tr>
    </thead>
    <tbody>
      ${members.map(row)}
    </tbody>
  </table>`;
}

function row({ name, schema, required }: Member): Markup {
  const { description, default: standard } = isJsonObject(schema) ? schema : {};
  const about = typeof description === "string" ? inline(description) : undefined;
  const unless = standard === undefined ? undefined : markup` Default <code>${JSON.stringify(standard)}</code>.`;
  const optional = required ? undefined : markup` <span class="scope">optional</span>`;
  return markup`<tr>
    <td><code>${name}</code>${optional}</td>
    <td>${typeWords(schema)}</td>
    <td>${about}${unless}</td>
  </tr> `;
}

/** Objects within are shown in place, by dotted names. */
function membersOf(schema: unknown, prefix: string, depth: number): Member[] {
  if (!isJsonObject(schema) || !isJsonObject(schema["properties"]) || depth > MAX_DEPTH) return [];
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(schema["properties"]).flatMap(([key, member]): Member[] => {
    const name = prefix + key;
    const inner = isJsonObject(member) && member["type"] === "array" ? member["items"] : member;
    const mark = inner === member ? "." : "[].";
    return [{ name, schema: member, required: required.includes(key) }, ...membersOf(inner, name + mark, depth + 1)];
  });
}

/** HTML as text: whatever is put in is escaped, unless it is HTML already. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Markup | string | number | undefined | readonly Part[];

/** markup`<p>${text}</p>` */
export function markup(pieces: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(pieces.map((piece, index) => piece + rendered(parts[index])).join(""));
}

/** Text with `code` in backticks, and paragraphs between blank lines. */
export function prose(text: string): Markup[] {
  return text.split(/\n\s*\n/).map((paragraph) => markup`<p>${inline(paragraph)}</p>`);
}

export function inline(text: string): Markup[] {
  return text
    .split("`")
    .map((part, index) => (index % 2 === 0 ? new Markup(escaped(part)) : markup`<code>${part}</code>`));
}

function rendered(part: Part): string {
  if (part === undefined) return "";
  if (part instanceof Markup) return part.text;
  if (typeof part === "object") return part.map(rendered).join("");
  return escaped(String(part));
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
