/** The document as one page for people. It asks for nothing else, runs no script, and follows the reader's light or dark. */
import { hash } from "node:crypto";
import { API_PATH } from "../../../../contract/rest.ts";
import { isJsonObject, type JsonObject } from "../../../../model/json.ts";
import { memberTable, table, typeWords } from "./docs-schema.ts";
import { DOCS_STYLE } from "./docs-style.ts";
import { type OpenApiDocument, tagOf } from "./document.ts";
import { Markup, inline, markup, prose } from "./markup.ts";

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
            <p class="scope">Version ${textIn(info, "version")}, <a href="${API_PATH}/openapi.json">openapi.json</a></p>
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
  return markup`${fine.map(([status, response]) => answer(status, response))}
    <p class="scope">
      Errors: ${errors.map((status, index) => markup`${index === 0 ? "" : ", "}<code>${status}</code>`)}
    </p>`;
}

function answer(status: string, response: unknown): Markup {
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
