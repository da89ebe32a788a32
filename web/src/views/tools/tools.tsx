import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo } from "react";
import type { InputOf } from "../../../../src/contract/operations.ts";
import type { ToolInfo } from "../../../../src/contract/catalog-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button, Spinner } from "../../components/button.tsx";
import { SearchBox, Select } from "../../components/fields.tsx";
import { Page, Toolbar } from "../../components/page.tsx";
import { Split } from "../../components/split.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { VirtualList } from "../../components/virtual-list.tsx";
import { nextPageOf, useOperation, usePages } from "../../state/queries.ts";
import { countText } from "../../text.ts";
import { PinBadge } from "./pin-badge.tsx";
import { ToolDetail } from "./tool-detail.tsx";

const route = getRouteApi("/tools");
const PAGE = 500;
const LINE_HEIGHT = 58;

type PinFilter = NonNullable<InputOf<"listTools">["pin"]>;
const PIN_FILTERS: readonly (readonly [PinFilter, string])[] = [
  ["same", "Pinned"],
  ["changed", "Changed"],
  ["new", "New"],
];

export function ToolsView() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const change = (next: Partial<typeof search>): void =>
    void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  const pin = PIN_FILTERS.find(([value]) => value === search.pin)?.[0];
  const query = usePages(
    "listTools",
    {
      limit: PAGE,
      fields: "summary",
      q: search.q,
      serverId: search.server,
      pin,
    },
    { keep: true },
  );
  const filtered = search.q !== undefined || search.server !== undefined || pin !== undefined;
  const total = query.data?.pages[0]?.total;
  return (
    <Page
      title="Tools"
      {...(total === undefined
        ? {}
        : { description: filtered ? countText(total, "tool fits", "tools fit") : countText(total, "tool") })}
    >
      <Split
        onClose={() => void navigate({ search: (old) => ({ ...old, tool: undefined }) })}
        detailLabel="Details of the tool"
        detail={
          search.tool === undefined ? undefined : (
            <ToolDetail
              key={search.tool}
              name={search.tool}
              onClose={() => void navigate({ search: (old) => ({ ...old, tool: undefined }) })}
              onRename={(tool) => change({ tool })}
            />
          )
        }
        list={
          <div className="flex flex-col gap-3">
            <Toolbar label="Filters">
              <SearchBox
                label="Find a tool"
                value={search.q ?? ""}
                onChange={(q) => change({ q: q === "" ? undefined : q })}
              />
              <ServerFilter value={search.server} onChange={(server) => change({ server })} />
              <Select
                aria-label="Pin state"
                value={pin ?? ""}
                options={[["", "Any pin state"], ...PIN_FILTERS]}
                onChange={(value) => change({ pin: value === "" ? undefined : value })}
              />
              {query.isFetching && query.data !== undefined && <Spinner />}
            </Toolbar>
            <Loaded query={query} skeleton={<Skeleton lines={10} label="Loading the tools" />}>
              {({ pages }) => (
                <ToolLines
                  pages={pages}
                  chosen={search.tool}
                  onEnd={nextPageOf(query)}
                  none={
                    filtered ? (
                      <Empty
                        title="No matching tools"
                        icon="search"
                        action={
                          <Button onClick={() => change({ q: undefined, server: undefined, pin: undefined })}>
                            Clear the filters
                          </Button>
                        }
                      />
                    ) : (
                      <Empty
                        title="No tools yet"
                        icon="tools"
                        action={
                          <Link to="/servers" search={{ add: "1" }} className="text-accent underline">
                            Add a server
                          </Link>
                        }
                      >
                        Tools come with the servers that are connected.
                      </Empty>
                    )
                  }
                />
              )}
            </Loaded>
          </div>
        }
      />
    </Page>
  );
}

interface ToolLinesProps {
  readonly pages: readonly { readonly tools: readonly ToolInfo[] }[];
  readonly chosen: string | undefined;
  readonly onEnd: (() => void) | undefined;
  readonly none: React.ReactNode;
}

function ToolLines({ pages, chosen, onEnd, none }: ToolLinesProps) {
  const tools = useMemo(() => pages.flatMap((page) => page.tools), [pages]);
  return (
    <div className="overflow-hidden rounded-lg border border-line bg-panel">
      {tools.length === 0 ? (
        none
      ) : (
        <VirtualList
          label="Tools"
          count={tools.length}
          lineHeight={LINE_HEIGHT}
          fixed
          lineKey={(index) => tools[index]?.name ?? String(index)}
          onEnd={onEnd}
          className="max-h-[calc(100dvh-13rem)]"
          line={(index) => {
            const tool = tools[index];
            return tool === undefined ? null : <ToolLine tool={tool} chosen={tool.name === chosen} />;
          }}
        />
      )}
    </div>
  );
}

function ToolLine({ tool, chosen }: { readonly tool: ToolInfo; readonly chosen: boolean }) {
  return (
    <Link
      from="/tools"
      to="/tools"
      search={(old) => ({ ...old, tool: tool.name })}
      aria-current={chosen ? "true" : undefined}
      className={`flex h-[58px] flex-col justify-center border-b border-line px-4 -outline-offset-2 hover:bg-hover ${chosen ? "bg-accent-wash" : ""}`}
    >
      <span className="flex items-center gap-2">
        <span className="truncate font-mono text-sm font-medium">{tool.name}</span>
        {tool.quarantined !== undefined && <Badge tone="bad">not offered</Badge>}
        {(tool.pin === "changed" || tool.pin === "new") && <PinBadge pin={tool.pin} />}
        <span className="ml-auto hidden shrink-0 text-sm text-faint sm:inline">{tool.serverId}</span>
      </span>
      <span className="truncate text-sm text-soft">{tool.description ?? tool.title ?? "No description"}</span>
    </Link>
  );
}

function ServerFilter({
  value,
  onChange,
}: {
  readonly value: string | undefined;
  readonly onChange: (server: string | undefined) => void;
}) {
  const servers = useOperation("listServers", { limit: 1000 });
  const known = servers.data?.servers.map((server) => [server.id, server.name] as const) ?? [];
  // In-process tools and skills are sources without a server; one from the address stays choosable.
  const extra = value === undefined || known.some(([id]) => id === value) ? [] : [[value, value] as const];
  return (
    <Select
      aria-label="Server"
      value={value ?? ""}
      options={[["", "All servers"], ...known, ...extra]}
      onChange={(id) => onChange(id === "" ? undefined : id)}
    />
  );
}
