/** The frame of the lists of resources and prompts: filters, lines, and the chosen one beside them. */
import type { InfiniteData } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Button, IconButton, Spinner } from "../../components/button.tsx";
import { SearchBox } from "../../components/fields.tsx";
import type { IconName } from "../../components/icon.tsx";
import { Page, Toolbar } from "../../components/page.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { ServerFilter } from "../../components/server-filter.tsx";
import { Split } from "../../components/split.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { LINE_2_HEIGHT, VirtualList } from "../../components/virtual-list.tsx";
import { components } from "../../messages/components.ts";
import { type Message, t } from "../../messages/messages.ts";
import { resources } from "../../messages/resources.ts";
import { nextPageOf } from "../../state/queries.ts";

interface Filters {
  readonly q: string | undefined;
  readonly server: string | undefined;
}

interface CatalogPageProps<Entry> {
  readonly title: Message;
  readonly count: Message;
  readonly find: Message;
  readonly icon: IconName;
  readonly none: Message;
  readonly noneHow: Message;
  readonly filters: Filters;
  readonly onFilter: (filters: Partial<Filters>) => void;
  readonly query: Parameters<typeof Loaded<InfiniteData<{ readonly total: number }>>>[0]["query"] &
    Parameters<typeof nextPageOf>[0];
  /** Of all pages of the query. */
  readonly entries: readonly Entry[];
  readonly keyOf: (entry: Entry) => string;
  readonly line: (entry: Entry) => ReactNode;
  readonly detail: ReactNode | undefined;
  readonly onClose: () => void;
}

export function CatalogPage<Entry>(props: CatalogPageProps<Entry>) {
  const { title, count, find, filters, onFilter, query, entries, keyOf, line, detail, onClose } = props;
  const total = query.data?.pages[0]?.total;
  const isFiltered = filters.q !== undefined || filters.server !== undefined;
  return (
    <Page title={t(title)} {...(total === undefined ? {} : { description: t(count, { count: total }) })}>
      <Split
        detailLabel={t(resources.details)}
        detail={detail}
        onClose={onClose}
        list={
          <div className="flex flex-col gap-3">
            <Toolbar label={t(components.filters)}>
              <SearchBox
                label={t(find)}
                value={filters.q ?? ""}
                onChange={(q) => onFilter({ q: q === "" ? undefined : q })}
              />
              <ServerFilter value={filters.server} onChange={(server) => onFilter({ server })} />
              {query.isFetching && query.data !== undefined && <Spinner />}
            </Toolbar>
            <Loaded query={query} skeleton={<Skeleton lines={10} label={t(resources.loading)} />}>
              {() => (
                <div className="overflow-hidden rounded-lg border border-line bg-panel">
                  {entries.length > 0 ? (
                    <VirtualList
                      label={t(title)}
                      count={entries.length}
                      lineHeight={LINE_2_HEIGHT}
                      fixed
                      lineKey={(index) => {
                        const entry = entries[index];
                        return entry === undefined ? String(index) : keyOf(entry);
                      }}
                      onEnd={nextPageOf(query)}
                      className="max-h-[calc(100dvh-13rem)]"
                      line={(index) => {
                        const entry = entries[index];
                        return entry === undefined ? null : line(entry);
                      }}
                    />
                  ) : isFiltered ? (
                    <Empty
                      title={t(resources.nothingFits)}
                      icon="search"
                      action={
                        <Button onClick={() => onFilter({ q: undefined, server: undefined })}>
                          {t(components.clearFilters)}
                        </Button>
                      }
                    />
                  ) : (
                    <Empty
                      title={t(props.none)}
                      icon={props.icon}
                      action={
                        <Link to="/servers" search={{ add: "1" }} className="text-accent underline">
                          {t(resources.addServer)}
                        </Link>
                      }
                    >
                      {t(props.noneHow)}
                    </Empty>
                  )}
                </div>
              )}
            </Loaded>
          </div>
        }
      />
    </Page>
  );
}

export function lineClass(chosen: boolean): string {
  return `flex h-line-2 flex-col justify-center border-b border-line px-4 -outline-offset-2 hover:bg-hover ${chosen ? "bg-accent-wash" : ""}`;
}

interface DetailHeadProps {
  readonly name: string;
  readonly title: string | undefined;
  readonly serverId: string;
  readonly badges?: ReactNode;
  readonly onClose: () => void;
}

export function DetailHead({ name, title, serverId, badges, onClose }: DetailHeadProps) {
  const server = (
    <Link to="/servers" search={{ server: serverId }} className="text-accent hover:underline">
      {serverId}
    </Link>
  );
  return (
    <div className="flex items-start gap-2 border-b border-line p-4">
      <div className="min-w-0 flex-1">
        <h2 className="font-mono text-lg font-semibold break-all">{name}</h2>
        <div className="mt-1 flex flex-wrap items-center gap-x-2 gap-y-1 text-sm text-soft">
          {title !== undefined && title !== name && <span className="break-words">{title}</span>}
          <span>
            <RichText message={resources.on} values={{ server }} />
          </span>
          {badges}
        </div>
      </div>
      <IconButton label={t(components.closeDetails)} icon="close" onClick={onClose} />
    </div>
  );
}

export function Gone({ onClose }: { readonly onClose: () => void }) {
  return (
    <Empty title={t(resources.gone)} action={<Button onClick={onClose}>{t(resources.back)}</Button>}>
      {t(resources.goneWhy)}
    </Empty>
  );
}
