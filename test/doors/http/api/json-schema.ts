/** Checks values against schemas of the OpenAPI document. */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { OpenApiDocument } from "../../../../src/doors/http/api/openapi-document.ts";
import { isJsonObject } from "../../../../src/model/json.ts";

export class DocumentSchemas {
  readonly #ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allErrors: true });
  readonly #known = new WeakMap<object, ValidateFunction>();
  readonly #document: OpenApiDocument;

  constructor(document: OpenApiDocument) {
    this.#document = document;
    this.#ajv.addKeyword("components");
  }

  /** What is wrong, or nothing. */
  problems(schema: unknown, value: unknown): string[] {
    if (!isJsonObject(schema)) throw new Error("no schema");
    let validate = this.#known.get(schema);
    if (validate === undefined) {
      const { schemas } = this.#document.components;
      validate = this.#ajv.compile({ ...schema, components: { schemas } });
      this.#known.set(schema, validate);
    }
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  }
}
