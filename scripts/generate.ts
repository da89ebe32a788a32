/** Writes the files that are made from the schemas: those of the config and of a skill's frontmatter. Run by `npm run generate`. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { renderConfigDocs } from "../src/config/config-docs.ts";
import { configJsonSchema } from "../src/config/json-schema.ts";
import { renderFrontmatterDocs } from "../src/skills/schema/frontmatter-docs.ts";
import { skillJsonSchema } from "../src/skills/schema/json-schema.ts";

const root = join(import.meta.dirname, "..");
mkdirSync(join(root, "docs"), { recursive: true });
writeFileSync(join(root, "schema.json"), `${JSON.stringify(configJsonSchema(), null, 2)}\n`);
writeFileSync(join(root, "docs", "config.md"), renderConfigDocs());
writeFileSync(join(root, "skill.schema.json"), `${JSON.stringify(skillJsonSchema(), null, 2)}\n`);
writeFileSync(join(root, "docs", "skill-frontmatter.md"), renderFrontmatterDocs());
