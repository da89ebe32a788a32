/**
 * The server that the conformance suites are run against, directly and through Toolcrib.
 * `node conformance/fixture-server.ts http|stdio [--era both|legacy|modern] [--port n]`; over HTTP it prints its address.
 */
import { parseArgs } from "node:util";
import { type Eras, serveHttp } from "./fixture/serve-http.ts";
import { serveStdio } from "./fixture/serve-stdio.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { era: { type: "string", default: "both" }, port: { type: "string", default: "0" } },
});

function isEras(value: string): value is Eras {
  return value === "both" || value === "legacy" || value === "modern";
}

if (!isEras(values.era)) throw new Error(`--era is both, legacy or modern, not ${values.era}.`);
if (positionals[0] === "stdio") await serveStdio(values.era);
else if (positionals[0] === "http") console.log((await serveHttp(values.era, Number(values.port))).url);
else throw new Error("Say http or stdio.");
