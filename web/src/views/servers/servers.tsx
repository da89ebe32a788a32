import { getRouteApi } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { Button } from "../../components/button.tsx";
import { SearchBox, Select } from "../../components/fields.tsx";
import { Page, Toolbar } from "../../components/page.tsx";
import { Split } from "../../components/split.tsx";
import { STATE_WORDS, type ServerState } from "../../components/state-dot.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { t } from "../../messages/messages.ts";
import { serverWords } from "../../messages/server-words.ts";
import { shell } from "../../messages/shell.ts";
import { useOperation } from "../../state/queries.ts";
import { AddServer } from "./server-dialog.tsx";
import { ServerDetailPanel } from "./server-detail.tsx";
import { ServerList } from "./server-list.tsx";
import { ServerSelection } from "./server-selection.tsx";
import { recentCallsOf } from "./server-words.ts";

const route = getRouteApi("/servers");
const REFRESH_MS = 60_000;

export function ServersView() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const query = useOperation("listServers", { limit: 1000 });
  const stats = useOperation("getStats", { range: "24h" }, { refetchInterval: REFRESH_MS });
  const recentCalls = useMemo(() => recentCallsOf(stats.data), [stats.data]);
  const change = (next: Partial<typeof search>): void =>
    void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  const open = (server: string | undefined): void =>
    void navigate({ search: (old) => ({ ...old, server, add: undefined, tab: undefined }) });
  const add = (
    <Button variant="primary" icon="plus" onClick={() => change({ add: "1" })}>
      {t(serverWords.add)}
    </Button>
  );
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const picked = (servers: readonly { readonly id: string }[]): string[] =>
    servers.map(({ id }) => id).filter((id) => selected.has(id));
  const asked = (search.q ?? "").toLowerCase();
  return (
    <Page title={t(shell.servers)} actions={add}>
      <Split
        onClose={() => open(undefined)}
        detailLabel={t(serverWords.details)}
        detail={
          search.server === undefined ? undefined : (
            <ServerDetailPanel
              key={search.server}
              serverId={search.server}
              tab={search.tab}
              onTab={(tab) => change({ tab })}
              onClose={() => open(undefined)}
            />
          )
        }
        list={
          <Loaded query={query} skeleton={<Skeleton lines={8} label={t(serverWords.loading)} />}>
            {({ servers }) => {
              if (servers.length === 0)
                return (
                  <div className="rounded-lg border border-line bg-panel">
                    <Empty title={t(serverWords.none)} icon="servers" action={add}>
                      {t(serverWords.noneHow)}
                    </Empty>
                  </div>
                );
              const states = [...new Set(servers.map((server) => server.state))].toSorted();
              const shown = servers.filter(
                (server) =>
                  (search.state === undefined || server.state === search.state) &&
                  (asked === "" ||
                    `${server.id} ${server.name} ${server.tags.join(" ")}`.toLowerCase().includes(asked)),
              );
              return (
                <div className="flex flex-col gap-3">
                  <Toolbar label={t(serverWords.filters)}>
                    <SearchBox
                      label={t(serverWords.find)}
                      className="max-w-80 min-w-44 flex-1"
                      value={search.q ?? ""}
                      onChange={(q) => change({ q: q === "" ? undefined : q })}
                    />
                    <Select
                      aria-label={t(serverWords.state)}
                      value={search.state ?? ""}
                      options={[
                        ["", t(serverWords.allStates, { count: servers.length })],
                        ...stateOptions(states, search.state).map(
                          (state) =>
                            [
                              state,
                              t(serverWords.inState, {
                                state: t(STATE_WORDS[state]),
                                count: servers.filter((server) => server.state === state).length,
                              }),
                            ] as const,
                        ),
                      ]}
                      onChange={(state) => change({ state: state === "" ? undefined : state })}
                    />
                  </Toolbar>
                  {picked(servers).length > 0 && (
                    <ServerSelection ids={picked(servers)} onClear={() => setSelected(new Set())} />
                  )}
                  {shown.length === 0 ? (
                    <div className="rounded-lg border border-line bg-panel">
                      <Empty
                        title={t(serverWords.noMatch)}
                        icon="search"
                        action={
                          <Button onClick={() => change({ q: undefined, state: undefined })}>
                            {t(serverWords.clearFilters)}
                          </Button>
                        }
                      />
                    </div>
                  ) : (
                    <ServerList
                      servers={shown}
                      recentCalls={recentCalls}
                      chosen={search.server}
                      selected={selected}
                      onSelect={(id, isOn) => setSelected(withMember(selected, id, isOn))}
                    />
                  )}
                </div>
              );
            }}
          </Loaded>
        }
      />
      {search.add !== undefined && (
        <AddServer onClose={() => change({ add: undefined })} onAdded={(serverId) => open(serverId)} />
      )}
    </Page>
  );
}

function withMember(set: ReadonlySet<string>, member: string, isIn: boolean): ReadonlySet<string> {
  const rest = [...set].filter((each) => each !== member);
  return new Set(isIn ? [...rest, member] : rest);
}

/** A state from the address stays choosable when no server is in it any more. */
function stateOptions(present: readonly ServerState[], asked: string | undefined): readonly ServerState[] {
  // Keys of STATE_WORDS are the states.
  const known = Object.keys(STATE_WORDS) as ServerState[];
  return known.filter((state) => present.includes(state) || state === asked);
}
