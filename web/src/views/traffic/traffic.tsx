/** Calls as they happen: client, tool, outcome. */
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { Button } from "../../components/button.tsx";
import { SearchBox, Select } from "../../components/fields.tsx";
import { Icon } from "../../components/icon.tsx";
import { Page, Toolbar } from "../../components/page.tsx";
import { Split } from "../../components/split.tsx";
import { Empty, FailureBox, Skeleton } from "../../components/states.tsx";
import { useWide } from "../../components/use-wide.ts";
import { LINE_2_HEIGHT, LINE_HEIGHT, VirtualList } from "../../components/virtual-list.tsx";
import { components } from "../../messages/components.ts";
import { t } from "../../messages/messages.ts";
import { shell } from "../../messages/shell.ts";
import { traffic } from "../../messages/traffic.ts";
import { clockText, millisecondsText, momentText } from "../../text.ts";
import { CallDetail } from "./call-detail.tsx";
import { OutcomeBadge, outcomeWord } from "./outcome-badge.tsx";
import { RecordingButton } from "./recording.tsx";
import {
  callerOf,
  choices,
  FAILED,
  filtered,
  isFiltered,
  NO_FILTER,
  type TrafficFilter,
  type TrafficLine,
} from "./traffic-log.ts";
import { useTraffic } from "./use-traffic.ts";

const route = getRouteApi("/traffic");

export function TrafficView() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const live = useTraffic();
  // While it is paused, what was there then.
  const [frozen, setFrozen] = useState<readonly TrafficLine[]>();
  const all = frozen ?? live.lines;
  const lines = useMemo(() => filtered(all, search), [all, search]);
  const change = (next: TrafficFilter): void =>
    void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  const close = (): void => void navigate({ search: (old) => ({ ...old, call: undefined }) });
  // A paused list has a call in progress; its details go on.
  const chosen = search.call === undefined ? undefined : find(search.call, live.lines, all);
  return (
    <Page
      title={t(shell.traffic)}
      description={t(traffic.about)}
      actions={
        <>
          <RecordingButton server={search.server} />
          <Button
            icon={frozen === undefined ? "pause" : "play"}
            variant={frozen === undefined ? "plain" : "primary"}
            onClick={() => setFrozen(frozen === undefined ? live.lines : undefined)}
          >
            {t(frozen === undefined ? traffic.pause : traffic.resume)}
          </Button>
        </>
      }
    >
      <div className={search.call === undefined ? "" : "hidden xl:block"}>
        <Filters lines={all} filter={search} onChange={change} />
      </div>
      {live.error !== null && <FailureBox error={live.error} />}
      <Split
        detailLabel={t(traffic.details)}
        onClose={close}
        detail={
          search.call === undefined ? undefined : chosen === undefined && !live.isLoading ? (
            <Empty title={t(traffic.gone)} action={<Button onClick={close}>{t(traffic.back)}</Button>} />
          ) : chosen === undefined ? (
            <Skeleton lines={6} />
          ) : (
            <CallDetail key={chosen.callId} line={chosen} onClose={close} />
          )
        }
        list={
          <div className="overflow-hidden rounded-lg border border-line bg-panel">
            {frozen !== undefined && (
              <p role="status" className="border-b border-line bg-warn-wash px-4 py-1.5 text-sm text-warn">
                {t(traffic.paused, { count: newerThan(live.lines, frozen) })}
              </p>
            )}
            {live.isLoading ? (
              <Skeleton lines={10} />
            ) : lines.length === 0 ? (
              <Nothing isFiltered={isFiltered(search)} onClear={() => change(NO_FILTER)} />
            ) : (
              <Calls lines={lines} total={all.length} chosen={search.call} />
            )}
          </div>
        }
      />
    </Page>
  );
}

function find(callId: string, ...lists: readonly (readonly TrafficLine[])[]): TrafficLine | undefined {
  return lists.flatMap((list) => list.find((line) => line.callId === callId) ?? [])[0];
}

function newerThan(now: readonly TrafficLine[], then: readonly TrafficLine[]): number {
  const first = then[0]?.callId;
  const at = now.findIndex(({ callId }) => callId === first);
  return at === -1 ? now.length : at;
}

interface FiltersProps {
  readonly lines: readonly TrafficLine[];
  readonly filter: TrafficFilter;
  readonly onChange: (next: TrafficFilter) => void;
}

const orNone = (text: string): string | undefined => (text === "" ? undefined : text);
const plain = (values: readonly string[]): (readonly [string, string])[] => values.map((value) => [value, value]);

function Filters({ lines, filter, onChange }: FiltersProps) {
  const outcomes = choices(lines, ({ outcome }) => outcome, filter.outcome).filter((each) => each !== FAILED);
  const roles = choices(lines, ({ role }) => role, filter.role);
  return (
    <Toolbar label={t(components.filters)}>
      <SearchBox label={t(traffic.find)} value={filter.q ?? ""} onChange={(q) => onChange({ q: orNone(q) })} />
      <Select
        aria-label={t(traffic.server)}
        value={filter.server ?? ""}
        options={[["", t(traffic.allServers)], ...plain(choices(lines, ({ serverId }) => serverId, filter.server))]}
        onChange={(server) => onChange({ server: orNone(server) })}
      />
      <Select
        aria-label={t(traffic.client)}
        value={filter.client ?? ""}
        options={[["", t(traffic.allClients)], ...plain(choices(lines, callerOf, filter.client))]}
        onChange={(client) => onChange({ client: orNone(client) })}
      />
      {roles.length > 0 && (
        <Select
          aria-label={t(traffic.role)}
          value={filter.role ?? ""}
          options={[["", t(traffic.allRoles)], ...plain(roles)]}
          onChange={(role) => onChange({ role: orNone(role) })}
        />
      )}
      <Select
        aria-label={t(traffic.outcome)}
        value={filter.outcome ?? ""}
        options={[
          ["", t(traffic.anyOutcome)],
          [FAILED, t(traffic.anyFailure)],
          ...outcomes.map((each) => [each, outcomeWord(each)] as const),
        ]}
        onChange={(outcome) => onChange({ outcome: orNone(outcome) })}
      />
      {isFiltered(filter) && (
        <Button variant="ghost" icon="close" onClick={() => onChange(NO_FILTER)}>
          {t(traffic.clear)}
        </Button>
      )}
    </Toolbar>
  );
}

function Nothing({ isFiltered: hides, onClear }: { readonly isFiltered: boolean; readonly onClear: () => void }) {
  if (hides)
    return (
      <Empty title={t(traffic.noMatch)} icon="search" action={<Button onClick={onClear}>{t(traffic.clear)}</Button>} />
    );
  return (
    <Empty
      title={t(traffic.nothingYet)}
      icon="traffic"
      action={
        <Link to="/tools" className="text-accent underline">
          {t(traffic.tryTool)}
        </Link>
      }
    >
      {t(traffic.nothingYetHow)}
    </Empty>
  );
}

const COLUMNS = "grid grid-cols-[5rem_minmax(6rem,11rem)_1rem_minmax(0,1fr)_minmax(5rem,9rem)_11rem_4.5rem] gap-3";

interface CallsProps {
  readonly lines: readonly TrafficLine[];
  readonly total: number;
  readonly chosen: string | undefined;
}

function Calls({ lines, total, chosen }: CallsProps) {
  const isWide = useWide() && chosen === undefined;
  const height = isWide ? LINE_HEIGHT : LINE_2_HEIGHT;
  return (
    <>
      {isWide && (
        <div aria-hidden="true" className={`${COLUMNS} border-b border-line px-4 py-1.5 text-sm text-faint`}>
          <span>{t(traffic.time)}</span>
          <span>{t(traffic.client)}</span>
          <span />
          <span>{t(traffic.tool)}</span>
          <span>{t(traffic.server)}</span>
          <span>{t(traffic.outcome)}</span>
          <span className="text-right">{t(traffic.took)}</span>
        </div>
      )}
      <VirtualList
        label={t(traffic.calls)}
        count={lines.length}
        lineHeight={height}
        fixed
        lineKey={(index) => lines[index]?.callId ?? String(index)}
        className="max-h-[calc(100dvh-15rem)]"
        line={(index) => {
          const line = lines[index];
          return line === undefined ? null : <Line line={line} isWide={isWide} isChosen={line.callId === chosen} />;
        }}
      />
      <p className="border-t border-line px-4 py-1.5 text-sm text-faint">
        {lines.length === total
          ? t(traffic.shown, { count: total })
          : t(traffic.shownOf, { shown: lines.length, total })}
      </p>
    </>
  );
}

interface LineProps {
  readonly line: TrafficLine;
  readonly isWide: boolean;
  readonly isChosen: boolean;
}

function Line({ line, isWide, isChosen }: LineProps) {
  const { callId, name, serverId, role, durationMs, findings } = line;
  const time = (
    <time dateTime={line.time} title={momentText(new Date(line.time))} className="whitespace-nowrap text-soft">
      {clockText(new Date(line.time))}
    </time>
  );
  const caller = role === null ? callerOf(line) : `${callerOf(line)} (${role})`;
  const took = durationMs === undefined ? "" : millisecondsText(durationMs);
  const outcome = (
    <span className="flex min-w-0 items-center gap-1.5">
      <OutcomeBadge outcome={line.outcome} />
      {findings.length > 0 && (
        <span title={t(traffic.found, { codes: findings.join(", ") })} className="inline-flex text-warn">
          <Icon name="warning" />
          <span className="sr-only">{t(traffic.withFindings)}</span>
        </span>
      )}
    </span>
  );
  const look = `border-b border-line px-4 -outline-offset-2 hover:bg-hover ${isChosen ? "bg-accent-wash" : ""}`;
  return (
    <Link
      from="/traffic"
      to="/traffic"
      search={(old) => ({ ...old, call: callId })}
      preload={false}
      aria-current={isChosen ? "true" : undefined}
      className={
        isWide
          ? `${COLUMNS} h-line items-center text-sm ${look}`
          : `flex h-line-2 flex-col justify-center gap-0.5 ${look}`
      }
    >
      {isWide ? (
        <>
          {time}
          <span className="truncate">{caller}</span>
          <Icon name="right" className="size-3.5 text-faint" />
          <span className="truncate font-mono">{name}</span>
          <span className="truncate text-soft">{serverId}</span>
          {outcome}
          <span className="text-right whitespace-nowrap text-soft">{took}</span>
        </>
      ) : (
        <>
          <span className="flex items-center gap-2">
            <span className="truncate font-mono text-sm font-medium">{name}</span>
            <span className="ml-auto shrink-0">{outcome}</span>
          </span>
          <span className="flex items-center gap-2 truncate text-sm text-soft">
            {time}
            <span className="truncate">{caller}</span>
            <span className="ml-auto shrink-0">{took}</span>
          </span>
        </>
      )}
    </Link>
  );
}
