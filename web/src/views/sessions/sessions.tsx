import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";
import { Button, Spinner } from "../../components/button.tsx";
import { Select } from "../../components/fields.tsx";
import { Page, Toolbar } from "../../components/page.tsx";
import { Split } from "../../components/split.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { nextPageOf, usePages } from "../../state/queries.ts";
import { countText } from "../../text.ts";
import { SessionDetailPanel } from "./session-detail.tsx";
import { SessionList } from "./session-list.tsx";
import { doorOptions, stateOf, STATES } from "./session-words.ts";

const route = getRouteApi("/sessions");
const PAGE = 200;

export function SessionsView() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const state = stateOf(search.state);
  const query = usePages("listSessions", { state, limit: PAGE, door: search.door }, { keep: true });
  const change = (next: Partial<typeof search>): void =>
    void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  const sessions = useMemo(() => query.data?.pages.flatMap((page) => page.sessions) ?? [], [query.data]);
  const total = query.data?.pages[0]?.total;
  return (
    <Page
      title="Sessions"
      {...(total === undefined
        ? {}
        : { description: `${countText(total, "session")}${state === "all" ? "" : ` ${state}`}` })}
    >
      <Split
        onClose={() => void navigate({ search: (old) => ({ ...old, session: undefined, tab: undefined }) })}
        detailLabel="Details of the session"
        detail={
          search.session === undefined ? undefined : (
            <SessionDetailPanel
              key={search.session}
              sessionId={search.session}
              tab={search.tab}
              onTab={(tab) => change({ tab })}
              onClose={() => void navigate({ search: (old) => ({ ...old, session: undefined, tab: undefined }) })}
            />
          )
        }
        list={
          <div className="flex flex-col gap-3">
            <Toolbar label="Filters">
              <Select
                aria-label="State"
                value={state}
                options={STATES}
                onChange={(value) => change({ state: value === "open" ? undefined : value })}
              />
              <Select
                aria-label="Door"
                value={search.door ?? ""}
                options={[["", "All doors"], ...doorOptions(sessions, search.door)]}
                onChange={(door) => change({ door: door === "" ? undefined : door })}
              />
              {query.isFetching && query.data !== undefined && <Spinner />}
            </Toolbar>
            <Loaded query={query} skeleton={<Skeleton lines={8} label="Loading the sessions" />}>
              {() =>
                sessions.length === 0 ? (
                  <div className="rounded-lg border border-line bg-panel">
                    <Empty
                      title={
                        search.door === undefined && state === "open" ? "No one is connected" : "No matching sessions"
                      }
                      icon="sessions"
                      action={
                        search.door === undefined ? undefined : (
                          <Button onClick={() => change({ door: undefined })}>All doors</Button>
                        )
                      }
                    >
                      Agents and programs appear here as they connect. Settings has snippets for agent clients.
                    </Empty>
                  </div>
                ) : (
                  <SessionList sessions={sessions} chosen={search.session} onEnd={nextPageOf(query)} />
                )
              }
            </Loaded>
          </div>
        }
      />
    </Page>
  );
}
