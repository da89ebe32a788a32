/** The report of the gateway bench as tables. */
import type { Aim } from "./aims.ts";
import type { GatewayReport } from "./gateway.bench.ts";
import { bestPeer, type Figures, rowOf } from "./measures/figures.ts";
import type { ScaleFigures } from "./measures/scale.ts";
import type { Spread } from "./stats.ts";
import { renderSummary } from "./summary.ts";
import { count, number, renderTable } from "./table.ts";

/** Every measure with its spread, and then what it comes to. */
export function renderGateway(report: GatewayReport): string {
  return [...report.figures.map(renderFigures), renderOutcome(report)].join("\n\n");
}

/** What it comes to, for a document. */
export function renderOutcome({ figures, scale, aims, leftOut }: GatewayReport): string {
  const reasons = Object.entries(leftOut).map(([name, reason]) => `- ${name}: ${reason}`);
  return [
    ...(figures.length === 0 ? [] : [renderSummary(figures)]),
    ...scale.map(renderScale),
    ...(aims.length === 0 ? [] : [renderAims(aims)]),
    ...(reasons.length === 0 ? [] : [`Left out:\n\n${reasons.join("\n")}`]),
  ].join("\n\n");
}

function renderFigures(figures: Figures): string {
  const { title, unit, floor, rows, failures } = figures;
  const [relay, peer] = [rowOf(figures, "relay"), bestPeer(figures)];
  const head = [
    title,
    unit,
    "half of the rounds",
    ...(floor === undefined ? [] : [`× ${floor}`, "half of the rounds"]),
  ];
  const to = (base: number | undefined, value: number): string => (base === undefined ? "–" : number(value / base));
  const cells = rows.map(({ subject, value, ratio }) => [
    subject,
    number(value.median),
    range(value),
    ...(floor === undefined ? [] : [ratio ? number(ratio.median) : "–", ratio ? range(ratio) : "–"]),
    to(relay?.value.median, value.median),
    to(peer?.value.median, value.median),
  ]);
  const failed = Object.entries(failures).map(([name, reason]) => `- ${name} failed: ${reason}`);
  return [renderTable([...head, "× relay", "× best peer"], cells), ...failed].join("\n");
}

function renderScale({ dimension, rows, failures }: ScaleFigures): string {
  const head = [
    `Toolcrib by ${dimension}`,
    "sessions",
    "servers",
    "tools",
    "calls/s",
    "× smallest",
    "half of the seconds",
    "CPU µs",
    "idle MB",
    "MB under load",
  ];
  const cells = rows.map((row) => [
    `${count(row[dimension])} ${dimension}`,
    count(row.sessions),
    count(row.servers),
    count(row.tools),
    number(row.callsPerSecond),
    number(row.ratio.median),
    range(row.ratio),
    number(row.cpuUs),
    number(row.rssMb),
    number(row.loadedMb),
  ]);
  const failed = Object.entries(failures).map(([name, reason]) => `- ${name} failed: ${reason}`);
  return [renderTable(head, cells), ...failed].join("\n");
}

function renderAims(aims: readonly Aim[]): string {
  const cells = aims.map(({ what, atMost, atLeast, got, relay, peer, met }) => [
    what,
    atMost === undefined ? `≥ ${atLeast}` : `≤ ${atMost}`,
    number(got),
    relay === undefined ? "–" : number(relay),
    peer === undefined ? "–" : number(peer),
    met ? "met" : "missed",
  ]);
  return renderTable(["Aim", "wanted", "Toolcrib", "relay", "best peer", ""], cells);
}

function range({ low, high }: Spread): string {
  return `${number(low)} – ${number(high)}`;
}
