/** Numbers, times and sizes as people write them in the page's language. */
import { components } from "./messages/components.ts";
import { currentLanguage, t } from "./messages/messages.ts";

const two = (value: number): string => String(value).padStart(2, "0");

export function clockText(date: Date): string {
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Date and time of day in full. */
export function momentText(date: Date): string {
  if (Number.isNaN(date.getTime())) return t(components.unknownTime);
  return date.toLocaleString(currentLanguage(), { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
}

export function dayText(date: Date): string {
  return date.toLocaleDateString(currentLanguage(), { month: "short", day: "numeric" });
}

export function sinceText(date: Date, now: number): string {
  const seconds = Math.round((date.getTime() - now) / 1000);
  if (Number.isNaN(seconds)) return t(components.unknownTime);
  if (seconds <= 0 && seconds > -10) return t(components.justNow);
  const [unit, length] = unitOf(Math.abs(seconds));
  return new Intl.RelativeTimeFormat(currentLanguage(), { style: "short" }).format(Math.trunc(seconds / length), unit);
}

/** The largest unit that fits into a span. */
function unitOf(seconds: number): readonly [unit: "day" | "hour" | "minute" | "second", seconds: number] {
  if (seconds >= 86_400) return ["day", 86_400];
  if (seconds >= 3600) return ["hour", 3600];
  return seconds >= 60 ? ["minute", 60] : ["second", 1];
}

/** The remaining time, as a countdown. */
export function leftText(milliseconds: number): string {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1000));
  return seconds >= 3600
    ? `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`
    : `${Math.floor(seconds / 60)}:${two(seconds % 60)}`;
}

export function millisecondsText(value: number): string {
  if (value < 1) return `<${measureText(1, "millisecond")}`;
  if (value < 1000) return measureText(Math.round(value), "millisecond");
  if (value < 60_000) return measureText(value / 1000, "second");
  const [unit, length] = unitOf(Math.round(value / 1000));
  return measureText(Math.floor(Math.round(value / 1000) / length), unit);
}

function measureText(value: number, unit: string): string {
  return new Intl.NumberFormat(currentLanguage(), { style: "unit", unit, maximumFractionDigits: 1 }).format(value);
}

/** The symbols are the same everywhere; the languages differ in how they write the number. */
export function bytesText(value: number): string {
  if (value < 1024) return `${numberText(value)} B`;
  if (value < 1024 * 1024) return `${numberText(value / 1024, 1)} KB`;
  return `${numberText(value / 1024 / 1024, 1)} MB`;
}

/** @param digits After the point, always as many; without it as many as there are. */
export function numberText(value: number, digits?: number): string {
  const fixed = digits === undefined ? {} : { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return new Intl.NumberFormat(currentLanguage(), fixed).format(value);
}

export function shareText(part: number, whole: number): string {
  const share = whole === 0 ? 0 : part / whole;
  const format = new Intl.NumberFormat(currentLanguage(), { style: "percent", maximumFractionDigits: 1 });
  return format.format(share);
}
