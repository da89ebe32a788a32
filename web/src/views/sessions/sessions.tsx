import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";
import { Button, Spinner } from "../../components/button.tsx";
import { Select } from "../../components/fields.tsx";
import { Page, Toolbar } from "../../components/page.tsx";
import { Split } from "../../components/split.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { type Message, t } from "../../messages/messages.ts";
import { sessionWords } from "../../messages/session-words.ts";
import { shell } from "../../messages/shell.ts";
import { nextPageOf, usePages } from "../../state/queries.ts";
import { SessionDetailPanel } from "./session-detail.tsx";
import { SessionList } from "./session-list.tsx";
import { doorOptions, type SessionState, stateOf, STATES } from "./session-words.ts";

const route = getRouteApi("/sessions");
const PAGE = 200;
const COUNTS: Readonly<Record<SessionState, Message>> = {
  open: sessionWords.countOpen,
  closed: sessionWords.countClosed,
  all: sessionWords.count,
};

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
      title={t(shell.sessions)}
      {...(total === undefined ? {} : { description: t(COUNTS[state], { count: total }) })}
    >
      <Split
        onClose={() => void navigate({ search: (old) => ({ ...old, session: undefined, tab: undefined }) })}
        detailLabel={t(sessionWords.details)}
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
            <Toolbar label={t(sessionWords.filters)}>
              <Select
                aria-label={t(sessionWords.state)}
                value={state}
                options={STATES.map(([each, word]) => [each, t(word)] as const)}
                onChange={(value) => change({ state: value === "open" ? undefined : value })}
              />
              <Select
                aria-label={t(sessionWords.door)}
                value={search.door ?? ""}
                options={[["", t(sessionWords.allDoors)], ...doorOptions(sessions, search.door)]}
                onChange={(door) => change({ door: door === "" ? undefined : door })}
              />
              {query.isFetching && query.data !== undefined && <Spinner />}
            </Toolbar>
            <Loaded query={query} skeleton={<Skeleton lines={8} label={t(sessionWords.loading)} />}>
              {() =>
                sessions.length === 0 ? (
                  <div className="rounded-lg border border-line bg-panel">
                    <Empty
                      title={t(
                        search.door === undefined && state === "open" ? sessionWords.noOne : sessionWords.noMatch,
                      )}
                      icon="sessions"
                      action={
                        search.door === undefined ? undefined : (
                          <Button onClick={() => change({ door: undefined })}>{t(sessionWords.allDoors)}</Button>
                        )
                      }
                    >
                      {t(sessionWords.noOneHow)}
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
