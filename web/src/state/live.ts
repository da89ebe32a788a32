/** The hub's events: they make kept answers out of date, and views may listen to them. */
import { useEffect, useEffectEvent, useSyncExternalStore } from "react";
import type { LiveStatus } from "../../../src/api-client/index.ts";
import type { OperationName } from "../../../src/contract/operations.ts";
import type { EventName, HubEvent } from "../../../src/contract/websocket.ts";
import { connectionStatus, onConnectionStatus, onHubEvent, openLive } from "../api.ts";
import { OUTDATED_BY } from "./event-keys.ts";
import { queryClient } from "./queries.ts";

type Outdated = readonly OperationName[] | "everything";

/** Many events in a moment lead to one question. */
function gatherer(delay: number): (operations: Outdated) => void {
  const outdated = new Set<OperationName>();
  let everything = false;
  let timer: number | undefined;
  const refresh = (): void => {
    timer = undefined;
    const names = new Set(everything ? [] : outdated);
    // Every key begins with the name of an operation: see queries.ts.
    if (everything) void queryClient.invalidateQueries();
    else void queryClient.invalidateQueries({ predicate: ({ queryKey }) => names.has(queryKey[0] as OperationName) });
    outdated.clear();
    everything = false;
  };
  return (operations) => {
    if (operations === "everything") everything = true;
    else if (operations.length === 0) return;
    else for (const each of operations) outdated.add(each);
    timer ??= window.setTimeout(refresh, delay);
  };
}

const soon = gatherer(200);
/** Calls may come by the hundred. */
const later = gatherer(1500);

let started = false;

export function startLive(): void {
  if (started) return;
  started = true;
  // What was asked before the first event could come may be old already.
  let wasLost = true;
  onHubEvent((event) => (event.type.startsWith("call.") ? later : soon)(OUTDATED_BY[event.type] ?? []));
  onConnectionStatus(() => {
    const status = connectionStatus();
    // Missed events are sent again, but questions that failed meanwhile are not asked again by themselves.
    if (status === "open" && wasLost) soon("everything");
    wasLost = status !== "open";
  });
  openLive();
}

export function useConnectionStatus(): LiveStatus {
  return useSyncExternalStore(onConnectionStatus, connectionStatus);
}

/** Calls `listener` for every event of these types while the view is shown. */
export function useHubEvent<Name extends EventName>(
  types: readonly Name[],
  listener: (event: HubEvent<Name>) => void,
): void {
  const latest = useEffectEvent(listener);
  useEffect(
    () =>
      onHubEvent((event) => {
        // The type is one of `types`, so the event is one of theirs.
        if (types.some((type) => type === event.type)) latest(event as HubEvent<Name>);
      }),
    // The list is written in place by callers; its text is what counts.
    [types.join(" ")],
  );
}
