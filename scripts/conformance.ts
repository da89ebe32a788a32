/**
 * `npm run conformance`: the official suites against our fixture server, directly and through Toolcrib, and their client
 * scenarios with the hub as the client. Exits with 1 if a check that passes directly does not pass through.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type ClientOutcome, runClientPart } from "../conformance/runner/client-part.ts";
import {
  directFailures,
  runDirectly,
  runThrough,
  runThroughReady,
  type ServerReport,
} from "../conformance/runner/server-part.ts";
import { type Suite, SUITES, versionOf } from "../conformance/runner/suites.ts";
import { clientLine, differenceLines, regressionCount, serverTable } from "../conformance/runner/table.ts";
import { type Upstream, UPSTREAMS } from "../conformance/runner/upstream.ts";

const USAGE = `npm run conformance -- [--suite old|next|client|all] [--only <scenario>] [--upstream <name>]… [--direct] [--out <folder>]
--suite     old: the server scenarios of 0.1; next: those of 0.2, for both revisions; client: the client scenarios of both; all: all
--upstream  how Toolcrib reaches the fixture: ${UPSTREAMS.join(", ")}; all if absent
--direct    without Toolcrib
--out       folder for the suites' files and report.json; .dev/conformance if absent
TOOLCRIB_GATEWAY_URL=<address>  uses a gateway that is there already, in front of "node conformance/fixture-server.ts http"`;

const WHAT = ["old", "next", "client", "all"];

const { values } = parseArgs({
  options: {
    suite: { type: "string", default: "all" },
    only: { type: "string" },
    upstream: { type: "string", multiple: true, default: [...UPSTREAMS] },
    direct: { type: "boolean", default: false },
    out: { type: "string", default: join(import.meta.dirname, "..", ".dev", "conformance") },
    help: { type: "boolean", default: false },
  },
});

function isUpstream(name: string): name is Upstream {
  return UPSTREAMS.some((known) => known === name);
}

const { only, suite: what } = values;
const folder = resolve(values.out);
const upstreams = values.upstream.filter(isUpstream);
if (values.help || !WHAT.includes(what) || upstreams.length < values.upstream.length) {
  console.error(USAGE);
  process.exitCode = values.help ? 0 : 2;
} else {
  process.exitCode = await main();
}

async function main(): Promise<number> {
  const servers: ServerReport[] = [];
  const clients: ClientOutcome[] = [];
  for (const suite of SUITES) {
    if (what === "all" || what === (suite.id === "0.1" ? "old" : "next")) servers.push(await serverPart(suite));
    if (what === "all" || what === "client") clients.push(...(await clientPart(suite)));
  }
  keep(servers, clients);
  const regressions = servers.reduce((sum, report) => sum + regressionCount(report), 0);
  const failures = clients.filter(({ verdict }) => verdict === "fail" || verdict === "stale").length;
  const own = servers.flatMap(({ direct }) => directFailures(direct));
  if (own.length > 0) console.log(`\nThe fixture itself fails: ${own.join(", ")}.`);
  console.log(`\n${regressions} regressions through the gateway, ${failures} unexpected results as a client.`);
  return regressions + failures + own.length === 0 ? 0 : 1;
}

async function serverPart(suite: Suite): Promise<ServerReport> {
  console.log(`\n== ${titleOf(suite)}: server scenarios`);
  const part = { folder, only };
  const direct = await runDirectly(suite, part);
  const ready = process.env["TOOLCRIB_GATEWAY_URL"];
  const through = [];
  if (ready !== undefined) through.push(await runThroughReady(suite, ready, direct, part));
  else if (!values.direct) {
    for (const upstream of upstreams) through.push(await runThrough(suite, upstream, direct, part));
  }
  const report = { suite, direct, through };
  console.log(serverTable(report));
  for (const line of differenceLines(report)) console.log(line);
  return report;
}

async function clientPart(suite: Suite): Promise<ClientOutcome[]> {
  console.log(`\n== ${titleOf(suite)}: client scenarios`);
  return runClientPart(suite, { folder, only, onOutcome: (outcome) => console.log(clientLine(outcome)) });
}

function titleOf(suite: Suite): string {
  return `@modelcontextprotocol/conformance ${versionOf(suite)} ${suite.serverArgs.join(" ")}`;
}

function keep(servers: readonly ServerReport[], clients: readonly ClientOutcome[]): void {
  const report = {
    time: new Date().toISOString(),
    node: process.version,
    servers: servers.map(({ suite, direct, through }) => ({
      suite: suite.id,
      version: versionOf(suite),
      direct: Object.fromEntries(direct),
      through: through.map(({ name, results, differences }) => ({
        name,
        differences,
        results: Object.fromEntries(results),
      })),
    })),
    clients,
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "report.json"), `${JSON.stringify(report, null, 2)}\n`);
}
