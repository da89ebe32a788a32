/** The time that figures are about. */
import type { StatsRange } from "../../../../src/contract/stats-ranges.ts";
import { t } from "../../messages/messages.ts";
import { overview } from "../../messages/overview.ts";
import { RANGES } from "./series.ts";

interface RangeChoiceProps {
  readonly value: StatsRange;
  readonly onChange: (range: StatsRange) => void;
}

export function RangeChoice({ value, onChange }: RangeChoiceProps) {
  return (
    <div
      role="group"
      aria-label={t(overview.range)}
      className="flex w-fit rounded-md border border-line-strong bg-panel p-0.5"
    >
      {RANGES.map(([range, label]) => (
        <button
          key={range}
          type="button"
          aria-pressed={range === value}
          onClick={() => onChange(range)}
          className="min-h-7 rounded-sm px-3 text-sm text-soft hover:text-ink aria-pressed:bg-accent-wash aria-pressed:font-medium aria-pressed:text-ink"
        >
          {t(label)}
        </button>
      ))}
    </div>
  );
}
