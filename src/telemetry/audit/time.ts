/** Times as people give them: to `--since` and `--until`, and to a query. */
import { ToolcribError } from "../../model/errors.ts";

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** `90s`, `15m`, `2h`, `7d`, `2w` ago, or a date and time as ISO 8601 writes it; a date alone is local midnight. */
export function parseTime(flag: string, text: string, now: number): number {
  const [, amount, unit] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  if (unit !== undefined) return now - Number(amount) * (UNITS[unit] ?? 0);
  const isDate = /^\d{4}-\d\d-\d\d$/.test(text);
  if (isDate || /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/.test(text)) {
    const time = Date.parse(isDate ? `${text}T00:00` : text);
    if (!Number.isNaN(time)) return time;
  }
  throw new ToolcribError("invalid_arguments", `${flag} ${JSON.stringify(text)} is no time.`, {
    hint: "Give a span such as 15m, 2h or 7d, or a time such as 2026-11-15T09:30.",
  });
}
