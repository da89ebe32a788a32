import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { withTables } from "../../../scripts/doc-tables.ts";
import {
  FrontmatterSchema,
  type SchemaNode,
  skillJsonSchema,
  StandardSchema,
} from "../../../src/skills/schema/frontmatter-schema.ts";
import { parse as parseServers } from "../servers/support.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const docs = readFileSync(join(root, "docs", "skill-frontmatter.md"), "utf8");

describe("[skill-04a] what is made from the schema of the frontmatter", () => {
  it("skill.schema.json is in step; if not, run `npm run generate`", () => {
    expect(JSON.parse(readFileSync(join(root, "skill.schema.json"), "utf8"))).toEqual(skillJsonSchema());
  });

  it("docs/skill-frontmatter.md is in step; if not, run `npm run generate`", () => {
    expect(docs.match(/<!-- table: /g), "a mark that is lost leaves a table as it is").toHaveLength(11);
    expect(docs).toBe(withTables(docs));
  });

  it("is published with the package", () => {
    const { files, exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      files: string[];
      exports: Record<string, unknown>;
    };
    expect(files).toContain("skill.schema.json");
    expect(exports["./skill.schema.json"]).toBe("./skill.schema.json");
  });

  it("describes every key for people", () => {
    const keys = { ...FrontmatterSchema.shape, ...StandardSchema.shape };
    for (const key of Object.keys(keys)) expect(docs).toContain(`| \`${key}\` |`);
    const walk = (node: SchemaNode, path: string): void => {
      for (const [key, child] of Object.entries(node.properties ?? {})) {
        if (!/image|port|author/.test(`${path}.${key}`))
          expect(child.description, `${path}.${key}`).toBeTypeOf("string");
        walk(child, `${path}.${key}`);
      }
      for (const option of node.anyOf ?? []) walk(option, path);
    };
    walk(skillJsonSchema(), "");
  });

  it("is a JSON Schema in good order whose root is open and whose standard is closed", () => {
    const ajv = new Ajv2020({ strict: true, allowUnionTypes: true }).addSchema(skillJsonSchema());
    const all = ajv.getSchema("urn:toolcrib:skill-frontmatter");
    const standard = ajv.getSchema("urn:toolcrib:skill-frontmatter#/$defs/standard");
    const skill = { name: "a-b", description: "x", "my-own": 1 };
    expect([all?.(skill), standard?.(skill)]).toEqual([true, false]);
    expect(standard?.({ name: "a-b", description: "x" })).toBe(true);
  });

  it("the example of the page is understood without a warning", () => {
    const blocks = [...docs.matchAll(/```yaml\n([^]*?)```/g)].map(([, text = ""]) => text.replaceAll("---\n", ""));
    expect(blocks).toHaveLength(2);
    for (const block of blocks) {
      const value = parse(block) as Record<string, unknown>;
      const { servers, told } = parseServers(value["requires-mcp-servers"]);
      expect(told).toEqual([]);
      expect(servers.every(({ template }) => template !== undefined)).toBe(true);
    }
  });
});
