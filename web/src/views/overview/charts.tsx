/** Two small charts. Each says in words what it shows. */
import type { ReactNode } from "react";
import { Section } from "../../components/page.tsx";
import { millisecondsText } from "../../text.ts";
import { barsOf, callsText, HEIGHT, latencyText, linesOf, type Minute, mostCalls, slowest, WIDTH } from "./chart.ts";

export function CallsChart({ minutes }: { readonly minutes: readonly Minute[] }) {
  const words = callsText(minutes);
  return (
    <Section
      title="Calls per minute"
      actions={
        <Legend
          entries={[
            ["bg-accent", "calls"],
            ["bg-bad", "failed"],
          ]}
        />
      }
    >
      <Frame words={words} top={mostCalls(minutes).toLocaleString("en")} minutes={minutes.length}>
        {barsOf(minutes).map((bar) => (
          <g key={bar.x}>
            <rect x={bar.x} y={bar.y} width={bar.width} height={bar.height} fill="var(--accent)" />
            <rect x={bar.x} y={HEIGHT - bar.failed} width={bar.width} height={bar.failed} fill="var(--bad)" />
          </g>
        ))}
      </Frame>
    </Section>
  );
}

export function LatencyChart({ minutes }: { readonly minutes: readonly Minute[] }) {
  const most = slowest(minutes);
  const known = minutes.some((minute) => minute.p50 !== null);
  return (
    <Section
      title="Latency"
      actions={
        <Legend
          entries={[
            ["bg-accent", "p50"],
            ["bg-warn", "p95"],
          ]}
        />
      }
    >
      <Frame words={latencyText(minutes)} top={known ? millisecondsText(most) : ""} minutes={minutes.length}>
        {linesOf(minutes, "p95", most).map((path) => (
          <Line key={path} path={path} colour="var(--warn)" dash="3 2" />
        ))}
        {linesOf(minutes, "p50", most).map((path) => (
          <Line key={path} path={path} colour="var(--accent)" />
        ))}
      </Frame>
    </Section>
  );
}

function Line({ path, colour, dash }: { readonly path: string; readonly colour: string; readonly dash?: string }) {
  return (
    <path
      d={path}
      fill="none"
      stroke={colour}
      strokeWidth="1.8"
      strokeDasharray={dash}
      strokeLinejoin="round"
      vectorEffect="non-scaling-stroke"
    />
  );
}

interface FrameProps {
  readonly words: string;
  /** The value at the upper edge. */
  readonly top: string;
  readonly minutes: number;
  readonly children: ReactNode;
}

function Frame({ words, top, minutes, children }: FrameProps) {
  return (
    <figure>
      <div aria-hidden="true" className="text-right text-xs text-faint">
        {top}
      </div>
      <svg
        role="img"
        aria-label={words}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        className="h-24 w-full overflow-visible border-y border-line"
      >
        {children}
      </svg>
      <div aria-hidden="true" className="mt-0.5 flex justify-between text-xs text-faint">
        <span>{minutes} min ago</span>
        <span>now</span>
      </div>
      <figcaption className="mt-1 text-sm text-soft">{words}</figcaption>
    </figure>
  );
}

function Legend({ entries }: { readonly entries: readonly (readonly [colour: string, label: string])[] }) {
  return (
    <div className="flex gap-3 text-xs text-soft">
      {entries.map(([colour, label]) => (
        <span key={label} className="inline-flex items-center gap-1.5">
          <span aria-hidden="true" className={`size-2.5 rounded-sm ${colour}`} />
          {label}
        </span>
      ))}
    </div>
  );
}
