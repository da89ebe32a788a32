/** Runs a suite against the fixture, directly and through the gateway, and holds the runs against each other. */
import { join } from "node:path";
import { acceptedDifferences } from "./accepted.ts";
import { type Results, tally, type Tally } from "./checks.ts";
import { compare, type Difference } from "./compare.ts";
import { startGateway } from "./gateway.ts";
import { runServerScenarios, type Suite } from "./suites.ts";
import { openUpstream, startFixture, type Upstream } from "./upstream.ts";

export interface Through {
  /** The upstream's name, or the address of a gateway that somebody else has started. */
  readonly name: string;
  readonly results: Results;
  readonly differences: readonly Difference[];
}

export interface ServerReport {
  readonly suite: Suite;
  readonly direct: Results;
  readonly through: readonly Through[];
}

export interface ServerPart {
  readonly folder: string;
  readonly only?: string | undefined;
}

export async function runDirectly(suite: Suite, { folder, only }: ServerPart): Promise<Results> {
  await using fixture = await startFixture();
  return await runServerScenarios(suite, { url: fixture.url, folder: join(folder, suite.id, "direct"), only });
}

export async function runThrough(
  suite: Suite,
  upstream: Upstream,
  direct: Results,
  { folder, only }: ServerPart,
): Promise<Through> {
  await using opened = await openUpstream(upstream);
  await using gateway = await startGateway(opened.entry);
  const results = await runServerScenarios(suite, {
    url: gateway.url,
    folder: join(folder, suite.id, upstream),
    only,
  });
  return { name: upstream, results, differences: compare(direct, results, acceptedDifferences(suite, upstream)) };
}

/** Against a gateway that is there already, in front of a fixture over HTTP. */
export async function runThroughReady(
  suite: Suite,
  url: string,
  direct: Results,
  { folder, only }: ServerPart,
): Promise<Through> {
  const results = await runServerScenarios(suite, { url, folder: join(folder, suite.id, "ready"), only });
  return { name: url, results, differences: compare(direct, results, acceptedDifferences(suite, "http")) };
}

/** The fixture has everything that the suites ask for except the tasks extension, so nothing else may fail directly. */
export function directFailures(direct: Results): string[] {
  return [...direct].flatMap(([scenario, checks]) =>
    scenario.startsWith("tasks-") || (tally(checks).failed === 0 && checks.length > 0) ? [] : [scenario],
  );
}

export interface Row {
  readonly scenario: string;
  readonly cells: readonly Tally[];
}

export function rowsOf({ direct, through }: ServerReport): Row[] {
  return [...direct.keys()].map((scenario) => ({
    scenario,
    cells: [direct, ...through.map(({ results }) => results)].map((results) => tally(results.get(scenario) ?? [])),
  }));
}

export function regressionsOf({ differences }: Through): Difference[] {
  return differences.filter(({ reason }) => reason === undefined);
}
