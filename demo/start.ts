/** What `npm start` runs: the hub on three bundled servers and one function, until Ctrl-C. Options of `serve` may follow. */
import { mkdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

const here = import.meta.dirname;
const folder = join(dirname(here), ".dev", "demo");
mkdirSync(folder, { recursive: true });

// The servers run on the Node that runs this, and keep their files out of the repository.
process.env["PATH"] = [dirname(process.execPath), process.env["PATH"]].filter(Boolean).join(delimiter);
process.env["DEMO_DIR"] = folder;
process.env["TOOLCRIB_HOME"] ??= join(folder, "home");

process.argv.splice(2, 0, "serve", "--config", join(here, "toolcrib.json"));
await import("../bin/toolcrib.js");
