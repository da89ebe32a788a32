import { getRouteApi } from "@tanstack/react-router";
import { useMemo, useRef, useState } from "react";
import { Button, Spinner } from "../../components/button.tsx";
import { Switch } from "../../components/fields.tsx";
import { Page } from "../../components/page.tsx";
import { Split } from "../../components/split.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { components } from "../../messages/components.ts";
import { audit } from "../../messages/audit.ts";
import { t } from "../../messages/messages.ts";
import { shell } from "../../messages/shell.ts";
import { RecordingButton } from "../traffic/recording.tsx";
import { AuditFilters } from "./audit-filters.tsx";
import { inputOf, isFiltered, NO_FILTER } from "./audit-filter.ts";
import { AuditList } from "./audit-list.tsx";
import { ExportLog } from "./export-log.tsx";
import { keyOf } from "./newest-records.ts";
import { RecordDetail } from "./record-detail.tsx";
import { useRecords } from "./use-records.ts";
import { nextPageOf } from "../../state/queries.ts";
import { VerifyLog } from "./verify-log.tsx";

const route = getRouteApi("/audit");

export function AuditView() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [follow, setFollow] = useState(true);
  const atTop = useRef(true);
  const input = inputOf(search);
  // What is to come is after any end.
  const canFollow = input.until === undefined;
  const query = useRecords(input, { follow: follow && canFollow, isAtTop: () => atTop.current });
  const change = (next: Partial<typeof search>): void =>
    void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  const close = (): void => void navigate({ search: (old) => ({ ...old, entry: undefined }) });
  const entries = useMemo(() => query.data?.pages.flatMap((page) => page.entries) ?? [], [query.data]);
  const chosen = search.entry === undefined ? undefined : entries.find((entry) => keyOf(entry) === search.entry);
  return (
    <Page
      title={t(shell.audit)}
      description={t(audit.about)}
      actions={
        <>
          <Switch label={t(audit.follow)} checked={follow && canFollow} disabled={!canFollow} onChange={setFollow} />
          <RecordingButton server={search.server} />
          <VerifyLog />
          <ExportLog input={input} />
        </>
      }
    >
      {/* Beside a record that has the whole width there is nothing to filter. */}
      <div className={search.entry === undefined ? "" : "hidden xl:block"}>
        <AuditFilters filter={search} onChange={change} />
      </div>
      <Split
        onClose={close}
        detailLabel={t(audit.details)}
        detail={
          search.entry === undefined ? undefined : chosen === undefined ? (
            <Empty
              title={t(query.isPending ? components.loading : audit.notListed)}
              action={<Button onClick={close}>{t(audit.back)}</Button>}
            >
              {!query.isPending && t(audit.notListedWhy)}
            </Empty>
          ) : (
            <RecordDetail entry={chosen} onClose={close} />
          )
        }
        list={
          <Loaded query={query} skeleton={<Skeleton lines={12} label={t(audit.loadingRecords)} />}>
            {() =>
              entries.length === 0 ? (
                <div className="rounded-lg border border-line bg-panel">
                  {isFiltered(search) ? (
                    <Empty
                      title={t(audit.noMatch)}
                      icon="search"
                      action={<Button onClick={() => change(NO_FILTER)}>{t(components.clearFilters)}</Button>}
                    />
                  ) : (
                    <Empty title={t(audit.nothingYet)} icon="audit">
                      {t(audit.nothingYetHow)}
                    </Empty>
                  )}
                </div>
              ) : (
                <AuditList
                  entries={entries}
                  chosen={search.entry}
                  // Another question begins at the top.
                  key={JSON.stringify(input)}
                  onTop={(isTop) => {
                    atTop.current = isTop;
                  }}
                  onEnd={nextPageOf(query)}
                  foot={
                    query.isFetchingNextPage ? (
                      <>
                        <Spinner /> {t(audit.loadingMore)}
                      </>
                    ) : (
                      t(query.hasNextPage ? audit.countMore : audit.count, { count: entries.length })
                    )
                  }
                />
              )
            }
          </Loaded>
        }
      />
    </Page>
  );
}
