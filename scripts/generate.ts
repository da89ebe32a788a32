/** Writes what is made from the schemas: those of the config, of a skill's frontmatter and of the HTTP contract. Run by `npm run generate`. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { configJsonSchema } from "../src/config/config-json-schema.ts";
import { skillJsonSchema } from "../src/skills/schema/frontmatter-schema.ts";
import { withTables } from "./doc-tables.ts";

const root = join(import.meta.dirname, "..");
writeFileSync(join(root, "schema.json"), `${JSON.stringify(configJsonSchema(), null, 2)}\n`);
writeFileSync(join(root, "skill.schema.json"), `${JSON.stringify(skillJsonSchema(), null, 2)}\n`);
for (const name of ["api.md", "config.md", "skill-frontmatter.md"]) {
  const file = join(root, "docs", name);
  writeFileSync(file, withTables(readFileSync(file, "utf8")));
}
