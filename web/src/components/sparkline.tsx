/** The shape of a row of counts. What it means stands beside it in words. */
import { summedTo } from "./chart-series.ts";

/** So narrow a picture has no room for more. */
const MAX_BARS = 48;

export function Sparkline({
  values,
  className = "h-6 w-24",
}: {
  readonly values: readonly number[];
  readonly className?: string;
}) {
  const bars = summedTo(values, MAX_BARS);
  const most = Math.max(1, ...bars);
  const step = 100 / Math.max(1, bars.length);
  const path = bars
    .map((value, index) =>
      value === 0 ? "" : `M${((index + 0.5) * step).toFixed(2)} 24V${(24 - (value / most) * 23).toFixed(2)}`,
    )
    .join("");
  return (
    <svg aria-hidden="true" viewBox="0 0 100 24" preserveAspectRatio="none" className={`text-accent ${className}`}>
      <path d="M0 23.5H100" stroke="var(--line)" vectorEffect="non-scaling-stroke" />
      <path d={path} stroke="currentColor" strokeWidth={Math.max(0.6, step * 0.8)} fill="none" />
    </svg>
  );
}
