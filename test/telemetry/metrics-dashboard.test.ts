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

async function metricLabels(): Promise<Map<string, readonly string[]>> {
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
  return metrics.labels();
}

async function metricNames(): Promise<Set<string>> {
  return new Set((await metricLabels()).keys());
}

function namesIn(text: string): string[] {
  const found = [...text.matchAll(/\b(?:toolcrib|process|nodejs)_[a-z\d_]+/g)].map(([name]) => name);
  return found.map((name) =>
    name.replace(/^(toolcrib_call_duration_seconds|toolcrib_finding_score)_(?:bucket|sum|count)$/, "$1"),
  );
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

  it("[joy-18b] selects and groups by labels that its metrics have", async () => {
    const labels = await metricLabels();
    /** Prometheus adds these. */
    const scraped = ["job", "instance"];
    for (const { expr } of queries) {
      const used = namesIn(expr).map((name) => [name, labels.get(name) ?? []] as const);
      for (const [, name = "", selector = ""] of expr.matchAll(
        /\b((?:toolcrib|process|nodejs)_[a-z\d_]+)\{([^}]*)\}/g,
      )) {
        const [metric = ""] = namesIn(name);
        const known = [...scraped, ...(labels.get(metric) ?? [])];
        const selected = [...selector.matchAll(/([a-z_]+)(?:=~|!~|!=|=)"/g)].map(([, label]) => label ?? "");
        expect(
          selected.filter((label) => !known.includes(label)),
          expr,
        ).toEqual([]);
      }
      for (const [, list = ""] of expr.matchAll(/\bby \(([^)]*)\)/g)) {
        const grouped = list.split(",").map((label) => label.trim());
        for (const [name, own] of used) {
          // `le` is that of the buckets.
          const odd = grouped.filter((label) => ![...own, ...scraped, "le"].includes(label));
          expect(odd, `${name} in ${expr}`).toEqual([]);
        }
      }
    }
    const all = queries.map(({ expr }) => expr).join("\n");
    for (const label of ["tool", "client", "server", "outcome"])
      expect(all).toMatch(new RegExp(`by \\([^)]*\\b${label}\\b`));
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
