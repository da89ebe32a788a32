import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { parse } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import { withTables } from "../../scripts/doc-tables.ts";
import { configJsonSchema } from "../../src/config/config-json-schema.ts";
import { configNode, entryNode } from "../../src/config/config-schema.ts";
import { runProgram } from "../support/run-program.ts";
import { FIXTURES } from "./support.ts";

const root = join(import.meta.dirname, "..", "..");
const docs = readFileSync(join(root, "docs", "config.md"), "utf8");

describe("[spine-04a] what is made from the schema", () => {
  it("schema.json is in step; if not, run `npm run generate`", () => {
    expect(JSON.parse(readFileSync(join(root, "schema.json"), "utf8"))).toEqual(configJsonSchema());
  });

  it("the command prints it, with the descriptions that other commands of the build do without", async () => {
    const { code, stdout } = await runProgram(process.execPath, [join(root, "bin", "toolcrib.js"), "schema"], {
      env: { NODE_DISABLE_COMPILE_CACHE: "1" },
    });
    expect([code, JSON.parse(stdout)]).toEqual([0, configJsonSchema()]);
  });

  it("docs/config.md is in step; if not, run `npm run generate`", () => {
    expect(docs.match(/<!-- table: /g), "a mark that is lost leaves a table as it is").toHaveLength(34);
    expect(docs).toBe(withTables(docs));
  });

  it("describes every key for people", () => {
    const { agent, sessions } = configNode().properties ?? {};
    for (const node of [configNode(), entryNode(), agent ?? {}, sessions ?? {}]) {
      for (const [key, child] of Object.entries(node.properties ?? {})) {
        expect(child.description, key).toBeTypeOf("string");
        expect(docs).toContain(`| \`${key}\` |`);
      }
    }
  });

  it("is a JSON Schema that takes the full example and refuses a wrong one", () => {
    const validate = new Ajv2020({ strict: true, strictRequired: false }).compile(configJsonSchema());
    const example: unknown = parse(readFileSync(join(FIXTURES, "toolcrib.json"), "utf8"), [], {
      allowTrailingComma: true,
    });
    expect(validate(example), JSON.stringify(validate.errors)).toBe(true);
    expect(validate({ mcpServers: { a: { command: 5 } } })).toBe(false);
    expect(validate({ unknown: 1 })).toBe(false);
  });
});
