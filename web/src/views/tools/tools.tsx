import { getRouteApi, Link } from "@tanstack/react-router";
import { lazy, Suspense, useMemo, useState } from "react";
import type { InputOf } from "../../../../src/contract/operations.ts";
import { Button, Spinner } from "../../components/button.tsx";
import { SearchBox, Select } from "../../components/fields.tsx";
import { Page, Toolbar } from "../../components/page.tsx";
import { ServerFilter } from "../../components/server-filter.tsx";
import { Split } from "../../components/split.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { components } from "../../messages/components.ts";
import { t } from "../../messages/messages.ts";
import { rules } from "../../messages/rules.ts";
import { toolWords } from "../../messages/tool-words.ts";
import { nextPageOf, useOperation, usePages } from "../../state/queries.ts";
import { SelectionBar, ServerRules } from "./rule-form.tsx";
import { ToolLines } from "./tool-lines.tsx";

// The list is there before forms, results and Markdown are loaded.
const ToolDetail = lazy(async () => ({ default: (await import("./tool-detail.tsx")).ToolDetail }));

const route = getRouteApi("/tools");
const PAGE = 500;

type PinFilter = NonNullable<InputOf<"listTools">["pin"]>;
const PIN_FILTERS: readonly PinFilter[] = ["same", "changed", "new"];
const PIN_TEXTS = { same: toolWords.filterPinned, changed: toolWords.filterChanged, new: toolWords.filterNew } as const;

export function ToolsView() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [server, setServer] = useState<string>();
  const change = (next: Partial<typeof search>): void =>
    void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  const pin = PIN_FILTERS.find((value) => value === search.pin);
  const query = usePages(
    "listTools",
    {
      limit: PAGE,
      fields: "summary",
      access: true,
      role: search.role,
      q: search.q,
      serverId: search.server,
      pin,
    },
    { keep: true },
  );
  const tools = useMemo(() => query.data?.pages.flatMap((page) => page.tools) ?? [], [query.data]);
  const filtered = search.q !== undefined || search.server !== undefined || pin !== undefined;
  const total = query.data?.pages[0]?.total;
  return (
    <Page
      title={t(toolWords.title)}
      {...(total === undefined
        ? {}
        : { description: t(filtered ? toolWords.countFit : toolWords.count, { count: total }) })}
    >
      <Split
        onClose={() => void navigate({ search: (old) => ({ ...old, tool: undefined }) })}
        detailLabel={t(toolWords.details)}
        detail={
          search.tool === undefined ? undefined : (
            <Suspense fallback={<Skeleton lines={8} label={t(toolWords.loadingOne)} />}>
              <ToolDetail
                key={search.tool}
                name={search.tool}
                role={search.role}
                onClose={() => void navigate({ search: (old) => ({ ...old, tool: undefined }) })}
                onRename={(tool) => change({ tool })}
              />
            </Suspense>
          )
        }
        list={
          <div className="flex flex-col gap-3">
            <Toolbar label={t(components.filters)}>
              <SearchBox
                label={t(toolWords.find)}
                value={search.q ?? ""}
                onChange={(q) => change({ q: q === "" ? undefined : q })}
              />
              <ServerFilter value={search.server} onChange={(chosen) => change({ server: chosen })} />
              <RoleFilter value={search.role} onChange={(role) => change({ role })} />
              <Select
                aria-label={t(toolWords.pinState)}
                value={pin ?? ""}
                options={[
                  ["", t(toolWords.anyPin)],
                  ...PIN_FILTERS.map((value) => [value, t(PIN_TEXTS[value])] as const),
                ]}
                onChange={(value) => change({ pin: value === "" ? undefined : value })}
              />
              {query.isFetching && query.data !== undefined && <Spinner />}
            </Toolbar>
            {selected.size > 0 && (
              <SelectionBar names={[...selected]} role={search.role} onClear={() => setSelected(new Set())} />
            )}
            <Loaded query={query} skeleton={<Skeleton lines={10} label={t(toolWords.loading)} />}>
              {() => (
                <ToolLines
                  tools={tools}
                  grouped={search.q === undefined}
                  chosen={search.tool}
                  selected={selected}
                  onSelect={(names, isOn) =>
                    setSelected((old) => {
                      const next = new Set(old);
                      for (const name of names)
                        if (isOn) next.add(name);
                        else next.delete(name);
                      return next;
                    })
                  }
                  onServerRules={setServer}
                  onEnd={nextPageOf(query)}
                  none={
                    filtered ? (
                      <Empty
                        title={t(toolWords.noneFit)}
                        icon="search"
                        action={
                          <Button onClick={() => change({ q: undefined, server: undefined, pin: undefined })}>
                            {t(components.clearFilters)}
                          </Button>
                        }
                      />
                    ) : (
                      <Empty
                        title={t(toolWords.none)}
                        icon="tools"
                        action={
                          <Link to="/servers" search={{ add: "1" }} className="text-accent underline">
                            {t(toolWords.addServer)}
                          </Link>
                        }
                      >
                        {t(toolWords.noneHow)}
                      </Empty>
                    )
                  }
                />
              )}
            </Loaded>
          </div>
        }
      />
      {server !== undefined && (
        <ServerRules
          tools={tools.filter(({ serverId }) => serverId === server)}
          serverId={server}
          role={search.role}
          onClose={() => setServer(undefined)}
        />
      )}
    </Page>
  );
}

interface FilterProps {
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}

/** As whom the tools are looked at. */
function RoleFilter({ value, onChange }: FilterProps) {
  const roles = useOperation("listRoles", {});
  const known = roles.data?.roles.map(({ role }) => role) ?? [];
  const all = value === undefined || known.includes(value) ? known : [...known, value];
  if (all.length === 0) return null;
  return (
    <Select
      aria-label={t(rules.role)}
      value={value ?? ""}
      options={[["", t(rules.everyone)], ...all.map((role) => [role, t(rules.roleNamed, { role })] as const)]}
      onChange={(role) => onChange(role === "" ? undefined : role)}
    />
  );
}
