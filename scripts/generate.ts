/** Writes the files that are made from the config schema: schema.json and docs/config.md. Run by `npm run generate`. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { renderConfigDocs } from "../src/config/config-docs.ts";
import { configJsonSchema } from "../src/config/json-schema.ts";

const root = join(import.meta.dirname, "..");
mkdirSync(join(root, "docs"), { recursive: true });
writeFileSync(join(root, "schema.json"), `${JSON.stringify(configJsonSchema(), null, 2)}\n`);
writeFileSync(join(root, "docs", "config.md"), renderConfigDocs());
