/** The lines of the live view: what the log has of before, and what happens while the view is shown. */
import { useEffect, useRef, useState } from "react";
import { useHubEvent } from "../../state/live.ts";
import { queryClient, useOperation } from "../../state/queries.ts";
import { HEARD, type TrafficLine, TrafficLog } from "./traffic-log.ts";

const RECENT = { type: "call", limit: 200 } as const;
/** Many events in a moment lead to one drawing. */
const DRAW_MS = 150;

interface Traffic {
  readonly lines: readonly TrafficLine[];
  readonly isLoading: boolean;
  readonly error: unknown;
}

export function useTraffic(): Traffic {
  const log = useRef<TrafficLog>(undefined);
  log.current ??= new TrafficLog();
  const [lines, setLines] = useState<readonly TrafficLine[]>([]);
  const timer = useRef<number>(undefined);
  const draw = (): void => {
    timer.current = undefined;
    setLines(log.current?.lines() ?? []);
  };
  const recent = useOperation("listAudit", RECENT);
  const waiting = useOperation("listApprovals", { status: "pending", limit: 100 });
  useEffect(() => {
    if (recent.data === undefined || waiting.data === undefined) return;
    log.current?.seed(recent.data.entries, waiting.data.approvals);
    draw();
  }, [recent.data, waiting.data]);
  useHubEvent(HEARD, (event) => {
    log.current?.take(event);
    timer.current ??= window.setTimeout(draw, DRAW_MS);
  });
  // No event makes the records out of date, and those of an earlier visit miss what came since.
  useEffect(() => {
    void queryClient.invalidateQueries({ queryKey: ["listAudit", RECENT] });
    return () => clearTimeout(timer.current);
  }, []);
  return { lines, isLoading: recent.isPending || waiting.isPending, error: recent.error ?? waiting.error };
}
