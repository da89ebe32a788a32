import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { OPERATIONS } from "../../../../src/contract/operations.ts";
import { REST_ROUTES } from "../../../../src/contract/rest.ts";
import { docsPage, DOCS_POLICY } from "../../../../src/doors/http/api/docs-page.ts";
import { openApiDocument } from "../../../../src/doors/http/api/openapi-document.ts";
import { ERROR_TABLE } from "../../../../src/model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../../src/model/json.ts";
import { workspace } from "../../../cli/run-cli.ts";
import { DocumentSchemas } from "./json-schema.ts";

const document = openApiDocument("1.2.3");
const schemas = new DocumentSchemas(document);

interface Described {
  readonly path: string;
  readonly method: string;
  readonly operation: JsonObject;
}

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]): Described => ({ path, method, operation })),
);

function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, key) => (isJsonObject(inner) ? inner[key] : undefined), value);
}

function list(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function* objectsIn(value: unknown): Generator<JsonObject> {
  if (Array.isArray(value)) for (const each of value) yield* objectsIn(each);
  if (!isJsonObject(value)) return;
  yield value;
  for (const each of Object.values(value)) yield* objectsIn(each);
}

describe("[oper-04a] the OpenAPI document", () => {
  it("is OpenAPI 3.1 with the version that it was given", () => {
    expect(document).toMatchObject({ openapi: "3.1.0", info: { title: "Toolcrib", version: "1.2.3" } });
    expect(JSON.parse(JSON.stringify(document))).toEqual(document);
  });

  it("has every route of the contract, each operation under an id of its own", () => {
    for (const { path, method } of REST_ROUTES) {
      expect(document.paths[path]?.[method.toLowerCase()], `${method} ${path}`).toBeDefined();
    }
    const ids = operations.map(({ operation }) => operation["operationId"]);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(expect.arrayContaining(Object.keys(OPERATIONS)));
  });

  it("resolves every reference", () => {
    const references = [...objectsIn(document)].flatMap(({ $ref: reference }) =>
      typeof reference === "string" ? [reference] : [],
    );
    expect(references.length).toBeGreaterThan(100);
    for (const reference of references) {
      expect(at(document, ...reference.slice(2).split("/")), reference).toBeTypeOf("object");
    }
  });

  it.each(operations)(
    "$method $path declares its parameters, and each answer says what it is",
    ({ path, operation }) => {
      const parameters = list(operation["parameters"]);
      const inPath = parameters.filter((parameter) => parameter["in"] === "path");
      expect(inPath.map(({ name }) => `{${String(name)}}`)).toEqual(path.match(/\{\w+\}/g) ?? []);
      expect(inPath.every(({ required }) => required === true)).toBe(true);
      const keys = parameters.map((parameter) => `${String(parameter["in"])} ${String(parameter["name"])}`);
      expect(new Set(keys).size).toBe(keys.length);
      const responses = Object.entries(isJsonObject(operation["responses"]) ? operation["responses"] : {});
      expect(responses.some(([status]) => status.startsWith("2"))).toBe(true);
      for (const [status, response] of responses) {
        expect(status).toMatch(/^[2-5]\d\d$/);
        expect(at(response, "description") ?? at(response, "$ref"), status).toBeTypeOf("string");
      }
      const security = operation["security"] ?? document["security"];
      for (const name of list(security).flatMap((entry) => Object.keys(entry))) {
        expect(at(document, "components", "securitySchemes", name)).toBeDefined();
      }
      expect(document["tags"]).toEqual(
        expect.arrayContaining([expect.objectContaining({ name: firstTag(operation) })]),
      );
    },
  );

  it.each(operations)("$method $path has examples that fit its schemas", ({ operation }) => {
    const problems: string[] = [];
    for (const { schema, example } of list(operation["parameters"])) {
      if (example !== undefined) problems.push(...schemas.problems(schema, example));
    }
    for (const holder of [operation["requestBody"], ...Object.values(Object(operation["responses"]))]) {
      const media = at(holder, "content", "application/json");
      const example = at(media, "example");
      if (example !== undefined) problems.push(...schemas.problems(at(media, "schema"), example));
    }
    expect(problems).toEqual([]);
  });

  it("[oper-04e] shows an example of every error code, in the one form", () => {
    const codes = new Set<unknown>();
    for (const response of Object.values(document.components.responses)) {
      const media = at(response, "content", "application/json");
      for (const example of Object.values(Object(at(media, "examples")))) {
        const value = at(example, "value");
        expect(schemas.problems(at(media, "schema"), value)).toEqual([]);
        codes.add(at(value, "error", "code"));
      }
    }
    expect([...codes].toSorted()).toEqual(Object.keys(ERROR_TABLE).toSorted());
  });

  it("answers have no fields that it does not declare", () => {
    const { schema } = Object(
      at(document.paths["/mcp/servers"], "get", "responses", "200", "content", "application/json"),
    );
    const example = at(
      document.paths["/mcp/servers"],
      "get",
      "responses",
      "200",
      "content",
      "application/json",
      "example",
    );
    expect(schemas.problems(schema, { ...Object(example), extra: 1 })).not.toEqual([]);
    expect(schemas.problems(schema, { servers: [], total: "1" })).not.toEqual([]);
  });

  it("is what `toolcrib openapi` prints", async () => {
    const { code, stdout } = await workspace().run(["openapi"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ openapi: "3.1.0", paths: JSON.parse(JSON.stringify(document.paths)) });
  });
});

function firstTag(operation: JsonObject): unknown {
  return Array.isArray(operation["tags"]) ? operation["tags"][0] : undefined;
}

describe("[oper-04b] the docs page", () => {
  const page = docsPage(document);

  it("names every operation and every schema", () => {
    for (const { operation } of operations) expect(page).toContain(`id="${String(operation["operationId"])}"`);
    for (const name of Object.keys(document.components.schemas)) expect(page).toContain(`id="schema-${name}"`);
    const targets = [...page.matchAll(/href="#([^"]+)"/g)].map(([, target]) => target);
    for (const target of new Set(targets)) expect(page).toContain(`id="${target}"`);
  });

  it("asks for nothing else and runs no script", () => {
    expect(page).not.toMatch(/<script|<link|<img|<iframe|@import|url\(|\son\w+=|\sstyle=/i);
    const addresses = [...page.matchAll(/(?:href|src|action)="([^"]*)"/g)].map(([, address]) => address);
    expect(addresses.filter((address) => address?.startsWith("#") !== true)).toEqual(["v1/openapi.json"]);
  });

  it("has a style that its Content-Security-Policy allows, and nothing more", () => {
    const style = /<style>([^]*?)<\/style>/.exec(page)?.[1] ?? "";
    expect(DOCS_POLICY).toContain(`style-src 'sha256-${hash("sha256", style, "base64")}'`);
    expect(DOCS_POLICY).toContain("default-src 'none'");
    expect(style).toContain("color-scheme: light dark");
  });

  it("shows text as text", () => {
    const odd = structuredClone(document);
    Object.assign(odd.paths["/me"]?.["get"] ?? {}, { summary: `<b onclick="x">'&` });
    expect(docsPage(odd)).toContain("&lt;b onclick=&quot;x&quot;&gt;&#39;&amp;");
    expect(docsPage(odd)).not.toContain("<b onclick");
  });
});
