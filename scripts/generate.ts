/** Writes what is made from the schemas: those of the config, of a skill's frontmatter and of the HTTP contract. Run by `npm run generate`. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { renderConfigDocs } from "../src/config/config-docs.ts";
import { configJsonSchema } from "../src/config/config-json-schema.ts";
import { renderFrontmatterDocs } from "../src/skills/schema/frontmatter-docs.ts";
import { skillJsonSchema } from "../src/skills/schema/frontmatter-schema.ts";
import { withApiTables } from "./api-tables.ts";

const root = join(import.meta.dirname, "..");
mkdirSync(join(root, "docs"), { recursive: true });
writeFileSync(join(root, "schema.json"), `${JSON.stringify(configJsonSchema(), null, 2)}\n`);
writeFileSync(join(root, "docs", "config.md"), renderConfigDocs());
writeFileSync(join(root, "skill.schema.json"), `${JSON.stringify(skillJsonSchema(), null, 2)}\n`);
writeFileSync(join(root, "docs", "skill-frontmatter.md"), renderFrontmatterDocs());
const api = join(root, "docs", "api.md");
writeFileSync(api, withApiTables(readFileSync(api, "utf8")));
