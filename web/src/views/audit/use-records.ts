/** Records that fit the filters, page by page; while followed, new ones come in by themselves. */
import type { InfiniteData } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { run } from "../../api.ts";
import { useHubEvent } from "../../state/live.ts";
import { queryClient, usePages } from "../../state/queries.ts";
import type { AuditInput } from "./audit-filter.ts";
import { type Gathered, gathered } from "./gathered.ts";
import { type AuditPage, strayStarts, withEnds, withNewest } from "./newest-records.ts";

const PAGE = 100;
const DELAY_MS = 400;
/** Above this, the oldest are dropped while they are not in view. */
const MOST = 5000;
const MOST_ENDS = 20;

/** Everything after which there may be a new record. */
const TELLING = [
  "call.started",
  "call.finished",
  "approval.requested",
  "approval.answered",
  "session.opened",
  "session.closed",
  "mcp.server.added",
  "mcp.server.removed",
  "mcp.server.changed",
  "skills.changed",
  "pins.changed",
  "config.reloaded",
  "warning",
  "events.lost",
] as const;

export function useRecords(
  filter: AuditInput,
  { follow, isAtTop }: { readonly follow: boolean; readonly isAtTop: () => boolean },
) {
  const input = { ...filter, limit: PAGE };
  const query = usePages("listAudit", input, { keep: true });
  const finished = useRef(new Set<string>());
  const follower = useRef<Gathered>(undefined);
  const key = JSON.stringify(input);

  useEffect(() => {
    if (!follow) return undefined;
    const queryKey = ["listAudit", input];
    const current = (): InfiniteData<AuditPage> | undefined => queryClient.getQueryData(queryKey);
    const put = (pages: AuditPage[]): void => {
      queryClient.setQueryData<InfiniteData<AuditPage>>(queryKey, (old) =>
        old === undefined ? old : { pages, pageParams: old.pageParams.slice(0, pages.length) },
      );
    };
    const takeNewest = async (): Promise<void> => {
      if (current() === undefined) return;
      const over = new Set(finished.current);
      const newest = await run("listAudit", input);
      const before = current();
      if (before === undefined) return;
      const count = before.pages.reduce((sum, page) => sum + page.entries.length, 0);
      put(count > MOST && isAtTop() ? [newest] : withNewest(before.pages, newest));
      const stray = strayStarts(current()?.pages ?? [], over).slice(0, MOST_ENDS);
      for (const each of over) finished.current.delete(each);
      const ends = await Promise.all(
        stray.map((callId) => run("listAudit", { ...filter, callId, type: "call", limit: 1 })),
      );
      const last = current();
      if (stray.length > 0 && last !== undefined)
        put(
          withEnds(
            last.pages,
            ends.flatMap((page) => page.entries),
          ),
        );
    };
    const mine = gathered(takeNewest, DELAY_MS);
    follower.current = mine;
    mine.ask();
    return () => mine.stop();
    // The text of the input is what counts.
  }, [follow, key]);

  useHubEvent(TELLING, (event) => {
    if (!follow) return;
    if (event.type === "call.finished") finished.current.add(event.callId);
    follower.current?.ask();
  });
  return query;
}
