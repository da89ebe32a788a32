import { useEffect, useState } from "react";
import { clockText, momentText, sinceText } from "../text.ts";

/** The current time, updated every `everyMs`. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** "3 min ago", with the exact time on hover; `clock` gives the time of day instead. */
export function Time({ at, clock = false }: { readonly at: string; readonly clock?: boolean }) {
  const now = useNow(15_000);
  const date = new Date(at);
  return (
    <time dateTime={at} title={momentText(date)} className="whitespace-nowrap">
      {clock ? clockText(date) : sinceText(date, now)}
    </time>
  );
}
