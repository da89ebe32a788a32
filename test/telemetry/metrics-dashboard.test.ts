import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { HubMetrics } from "../../src/telemetry/metrics.ts";

const docs = resolve(import.meta.dirname, "../../docs");

interface Panel {
  readonly type: string;
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}

async function metricNames(): Promise<Set<string>> {
  const metrics = new HubMetrics(
    {
      on: () => () => {},
      servers: () => [],
      sessions: () => [],
      asked: () => [],
      measures: () => ({ underWay: [], auditLost: 0 }),
    },
    "1",
  );
  return new Set(await metrics.names());
}

function namesIn(text: string): string[] {
  const found = [...text.matchAll(/\b(?:toolcrib|process|nodejs)_[a-z\d_]+/g)].map(([name]) => name);
  return found.map((name) => name.replace(/^(toolcrib_call_duration_seconds)_(?:bucket|sum|count)$/, "$1"));
}

describe("[oper-12c] the Grafana dashboard", () => {
  // A cast, because the file is ours and what matters of it is looked at below.
  const dashboard = JSON.parse(readFileSync(resolve(docs, "grafana-dashboard.json"), "utf8")) as Dashboard;
  const queries = dashboard.panels.flatMap(({ targets = [] }) => targets);

  it("asks only for metrics that exist, and for all of ours", async () => {
    const known = await metricNames();
    const variables = dashboard.templating.list.map(({ definition = "" }) => definition);
    const used = new Set(namesIn([...queries.map(({ expr }) => expr), ...variables].join("\n")));
    expect(used.size).toBeGreaterThan(15);
    expect([...used].filter((name) => !known.has(name))).toEqual([]);
    expect([...known].filter((name) => name.startsWith("toolcrib_") && !used.has(name))).toEqual([]);
  });

  it("leaves the data source to whoever imports it, and every variable is there", () => {
    const sources = [...queries, ...dashboard.panels].flatMap(({ datasource }) => datasource?.uid ?? []);
    expect(new Set(sources)).toEqual(new Set(["${datasource}"]));
    const variables = new Set(dashboard.templating.list.map(({ name }) => name));
    const wanted = queries.flatMap(({ expr }) => [...expr.matchAll(/\$([a-z]+)/g)].map(([, name]) => name));
    expect(wanted.filter((name) => !variables.has(name ?? ""))).toEqual([]);
  });
});

describe("[oper-12a] docs/metrics.md", () => {
  it("names every metric, and none that is not there", async () => {
    const known = await metricNames();
    const text = readFileSync(resolve(docs, "metrics.md"), "utf8");
    const rows = [...text.matchAll(/^\| `(toolcrib_[a-z_]+)` \|/gm)].map(([, name]) => name);
    expect(new Set(rows)).toEqual(new Set([...known].filter((name) => name.startsWith("toolcrib_"))));
  });
});
