/** The first official suite, directly against the fixture and through Toolcrib: what passes directly passes through. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Results, tally } from "../../conformance/runner/checks.ts";
import { directFailures, regressionsOf, runDirectly, runThrough } from "../../conformance/runner/server-part.ts";
import { SUITES } from "../../conformance/runner/suites.ts";
import { UPSTREAMS } from "../../conformance/runner/upstream.ts";

const LONG_MS = 120_000;
const first = SUITES[0];
if (first === undefined) throw new Error("There is no suite.");
const suite = first;

const folder = mkdtempSync(join(tmpdir(), "toolcrib-conformance-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("@modelcontextprotocol/conformance 0.1 --suite all", () => {
  let direct: Results;
  beforeAll(async () => {
    direct = await runDirectly(suite, { folder });
  }, LONG_MS);

  it("[gate-04a] the fixture passes every check directly", () => {
    expect(directFailures(direct)).toEqual([]);
    const { passed, failed } = tally([...direct.values()].flat());
    expect({ scenarios: direct.size, passed, failed }).toEqual({ scenarios: 32, passed: 47, failed: 0 });
  });

  it.each(UPSTREAMS)(
    "[gate-04a] every check that passes directly passes through the gateway, upstream %s",
    async (upstream) => {
      const through = await runThrough(suite, upstream, direct, { folder });
      expect([...through.results.keys()]).toEqual([...direct.keys()]);
      expect(regressionsOf(through)).toEqual([]);
    },
    LONG_MS,
  );
});
