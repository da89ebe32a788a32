/** How the hub is doing: what needs a person, what was called, what went wrong. */
import { getRouteApi, Link } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense } from "react";
import type { Overview } from "../../../../src/contract/activity-schemas.ts";
import type { Stats } from "../../../../src/contract/stats-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Icon } from "../../components/icon.tsx";
import { Page, Section } from "../../components/page.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { STATE_WORDS, StateDot, type ServerState } from "../../components/state-dot.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { Time } from "../../components/time.tsx";
import { t } from "../../messages/messages.ts";
import { overview } from "../../messages/overview.ts";
import { useOperation } from "../../state/queries.ts";
import { numberText, shareText } from "../../text.ts";
import { sessionText } from "../approvals/answer-words.ts";
import { CallGroups, Problems, Slowest } from "./call-lists.tsx";
import { FirstSteps } from "./first-steps.tsx";
import { RangeChoice } from "./range-choice.tsx";
import { durationText, isRange } from "./series.ts";
import { TokenCosts } from "./token-costs.tsx";

/** The library of the charts comes behind the rest of the view. */
const CallsChart = lazy(async () => ({ default: (await import("./call-charts.tsx")).CallsChart }));
const LatencyChart = lazy(async () => ({ default: (await import("./call-charts.tsx")).LatencyChart }));

const route = getRouteApi("/");
/** Calls come in by the second, and the figures change slowly. */
const REFRESH_MS = 15_000;

const ONLY = {
  server: overview.onlyServer,
  tool: overview.onlyTool,
  client: overview.onlyClient,
  role: overview.onlyRole,
} as const;
export type Dimension = keyof typeof ONLY;

export function OverviewView() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const range = isRange(search.range) ? search.range : "24h";
  const dimension = search.by !== undefined && search.by in ONLY ? (search.by as Dimension) : undefined;
  const only = dimension === undefined ? {} : { [dimension]: search.of ?? "" };
  const query = useOperation("overview", {}, { refetchInterval: REFRESH_MS });
  const stats = useOperation("getStats", { range, ...only }, { keep: true, refetchInterval: REFRESH_MS });
  const show = (by: Dimension | undefined, of?: string): void =>
    void navigate({ search: (old) => ({ ...old, by, of }), replace: true });
  return (
    <Page
      title={t(overview.title)}
      description={query.data !== undefined && <About status={query.data} />}
      actions={
        <RangeChoice
          value={range}
          onChange={(next) => void navigate({ search: (old) => ({ ...old, range: next }), replace: true })}
        />
      }
    >
      <FirstSteps />
      <Loaded query={query} skeleton={<Skeleton lines={6} label={t(overview.loading)} />}>
        {(status) => (
          <>
            {status.pendingApprovals > 0 && <Pending count={status.pendingApprovals} />}
            <FailedServers count={(status.servers["failed"] ?? 0) + (status.servers["degraded"] ?? 0)} />
            <Numbers status={status} stats={stats.data} />
          </>
        )}
      </Loaded>
      {dimension !== undefined && (
        <div className="flex flex-wrap items-center gap-2">
          <Badge tone="accent">{t(ONLY[dimension], { name: search.of ?? t(overview.nameless) })}</Badge>
          <Button size="sm" variant="ghost" icon="close" onClick={() => show(undefined)}>
            {t(overview.showAll)}
          </Button>
        </div>
      )}
      <Loaded query={stats} skeleton={<Skeleton lines={12} label={t(overview.loading)} />}>
        {(figures) => (
          <>
            <div className="grid gap-4 lg:grid-cols-2">
              <Section title={t(overview.callsOverTime)}>
                <Suspense fallback={<Skeleton />}>
                  <CallsChart stats={figures} group="overview" />
                </Suspense>
              </Section>
              <Section title={t(overview.latencyOverTime)}>
                <Suspense fallback={<Skeleton />}>
                  <LatencyChart stats={figures} group="overview" />
                </Suspense>
              </Section>
            </div>
            {dimension !== "client" && dimension !== "role" && <CallGroups stats={figures} onShow={show} />}
            <div className="grid items-start gap-4 lg:grid-cols-2">
              {dimension !== "client" && dimension !== "role" && (
                <>
                  <Problems
                    title={t(overview.failures)}
                    none={t(overview.noFailures)}
                    noneHow={t(overview.noFailuresHow)}
                    problems={figures.failures}
                    since={figures.since}
                  />
                  <Slowest stats={figures} />
                </>
              )}
              {query.data !== undefined && <Findings found={query.data.findings} inResults={figures.findings} />}
              <TokenCosts />
            </div>
          </>
        )}
      </Loaded>
      {query.data !== undefined && query.data.warnings.length > 0 && <Warnings warnings={query.data.warnings} />}
    </Page>
  );
}

const STORES = { sqlite: "SQLite", postgres: "PostgreSQL" } as const;

function About({ status }: { readonly status: Overview }) {
  const { version, startedAt, store, node } = status;
  const values = { version, started: <Time at={startedAt} /> };
  return (
    <>
      {store === "none" ? (
        <RichText message={overview.aboutFiles} values={values} />
      ) : (
        <RichText message={overview.aboutStored} values={{ ...values, store: STORES[store] }} />
      )}
      {node !== undefined && ` ${t(overview.ofNode, { node })}`}
    </>
  );
}

function Numbers({ status, stats }: { readonly status: Overview; readonly stats: Stats | undefined }) {
  const total = stats?.total;
  const count = (value: number | undefined): string => (value === undefined ? "–" : numberText(value));
  const share = (value: number): string | undefined =>
    total === undefined || total.calls === 0 ? undefined : t(overview.ofAll, { share: shareText(value, total.calls) });
  const held = total?.waiting ?? 0;
  return (
    <div className="grid grid-cols-2 gap-2 sm:grid-cols-3 md:gap-3 xl:grid-cols-[repeat(5,minmax(0,1fr))_minmax(0,1.7fr)]">
      <Figure label={t(overview.calls)} value={count(total?.calls)} />
      <Figure label={t(overview.failed)} value={count(total?.failed)} more={share(total?.failed ?? 0)} />
      <Figure label={t(overview.refused)} value={count(total?.refused)} more={share(total?.refused ?? 0)} />
      <Figure
        label={t(overview.waiting)}
        title={t(overview.waitingHow)}
        value={numberText(status.pendingApprovals)}
        more={held > 0 ? t(overview.heldBefore, { count: held }) : undefined}
      />
      <Figure
        label={`${t(overview.latency)} p50`}
        value={durationText(total?.p50 ?? null)}
        more={`p95 ${durationText(total?.p95 ?? null)} · p99 ${durationText(total?.p99 ?? null)}`}
      />
      <Servers status={status} />
    </div>
  );
}

interface FigureProps {
  readonly label: string;
  readonly value: string;
  readonly more?: string | undefined;
  readonly title?: string;
}

function Figure({ label, value, more, title }: FigureProps) {
  return (
    <div title={title} className="min-w-0 rounded-lg border border-line bg-panel px-4 py-3">
      <div className="text-soft">{label}</div>
      <div className="text-xl font-semibold">{value}</div>
      <div className="min-h-[1lh] text-sm text-faint">{more}</div>
    </div>
  );
}

function Servers({ status }: { readonly status: Overview }) {
  // Keys of STATE_WORDS are the states.
  const states = (Object.keys(STATE_WORDS) as ServerState[]).filter((state) => (status.servers[state] ?? 0) > 0);
  return (
    <div className="min-w-0 rounded-lg border border-line bg-panel px-4 py-3">
      <div className="text-soft">{t(overview.servers)}</div>
      {states.length === 0 ? (
        <Link to="/servers" search={{ add: "1" }} className="text-accent underline" title={t(overview.noServers)}>
          {t(overview.addFirst)}
        </Link>
      ) : (
        <ul className="flex flex-wrap gap-x-3">
          {states.map((state) => (
            <li key={state}>
              <Link to="/servers" search={{ state }} className="inline-flex items-center gap-1.5 hover:underline">
                <StateDot state={state} bare />
                <span className="text-xl font-semibold">{status.servers[state]}</span>
              </Link>
            </li>
          ))}
        </ul>
      )}
      <div className="flex flex-wrap gap-x-2 text-sm text-faint">
        <Count to="/tools" label={t(overview.tools)} value={status.tools} />
        <Count to="/skills" label={t(overview.skills)} value={status.skills} />
        <Count to="/sessions" label={t(overview.sessions)} value={status.sessions} />
      </div>
    </div>
  );
}

interface CountProps {
  readonly to: "/tools" | "/skills" | "/sessions";
  readonly label: string;
  readonly value: number;
}

function Count({ to, label, value }: CountProps) {
  return (
    <Link to={to} className="whitespace-nowrap hover:underline">
      {label} {numberText(value)}
    </Link>
  );
}

function Pending({ count }: { readonly count: number }) {
  const pending = useOperation("listApprovals", { status: "pending", limit: 100 });
  const first = pending.data?.approvals.slice(0, 3) ?? [];
  return (
    <Alert
      tone="warn"
      icon="approvals"
      title={t(overview.waitForYou, { count })}
      action={
        <Link to="/approvals" className="font-medium text-accent underline">
          {t(overview.answer)}
        </Link>
      }
    >
      {first.length > 0 && (
        <ul className="mt-1">
          {first.map((approval) => (
            <li key={approval.id} className="text-sm break-words">
              <span className="font-mono">{approval.name}</span>
              <span className="text-soft">
                {" "}
                · {sessionText(approval.session)}, <Time at={approval.askedAt} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Alert>
  );
}

/** By name, with what to do. */
function FailedServers({ count }: { readonly count: number }) {
  const query = useOperation("listServers", { limit: 1000 }, { enabled: count > 0 });
  if (count === 0) return null;
  const down = query.data?.servers.filter(({ state }) => state === "failed" || state === "degraded") ?? [];
  return (
    <Alert tone="bad" icon="warning" title={t(overview.failedServers, { count })}>
      <ul className="mt-1 flex flex-col gap-2">
        {down.map(({ id, name, state, lastError, hint }) => (
          <li key={id} className="min-w-0 text-sm">
            <span className="inline-flex flex-wrap items-center gap-x-2">
              <StateDot state={state} bare />
              <Link to="/servers" search={{ server: id }} className="font-medium text-accent underline">
                {name}
              </Link>
              <Link to="/servers" search={{ server: id, tab: "log" }} className="text-accent underline">
                {t(overview.openLog)}
              </Link>
            </span>
            <p className="line-clamp-3 break-words whitespace-pre-wrap">{lastError ?? t(overview.noReason)}</p>
            <p className="break-words text-soft">
              <span className="font-medium">{t(overview.fix)}:</span> {hint ?? t(overview.usualFix)}
            </p>
          </li>
        ))}
      </ul>
    </Alert>
  );
}

interface AlertProps {
  readonly tone: "warn" | "bad";
  readonly icon: "approvals" | "warning";
  readonly title: string;
  readonly action?: ReactNode;
  readonly children?: ReactNode;
}

function Alert({ tone, icon, title, action, children }: AlertProps) {
  const colours = tone === "warn" ? "border-warn bg-warn-wash" : "border-bad bg-bad-wash";
  return (
    <section aria-label={title} className={`rounded-lg border px-4 py-3 ${colours}`}>
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 className={`flex items-center gap-2 font-semibold ${tone === "warn" ? "text-warn" : "text-bad"}`}>
          <Icon name={icon} />
          {title}
        </h2>
        {action}
      </div>
      {children}
    </section>
  );
}

interface FindingsProps {
  readonly found: Overview["findings"];
  readonly inResults: Stats["findings"];
}

/** Of the scan of definitions, which are there now, and of results in the range. */
function Findings({ found, inResults }: FindingsProps) {
  const count = found.length + inResults.length;
  return (
    <Section title={t(overview.findings)} flush>
      {count === 0 ? (
        <Empty title={t(overview.noFindings)} icon="check">
          {t(overview.noFindingsHow)}
        </Empty>
      ) : (
        <ul className="max-h-80 divide-y divide-line overflow-y-auto" tabIndex={0} aria-label={t(overview.findings)}>
          {[...Map.groupBy(found, ({ server, kind, name }) => JSON.stringify([server, kind, name])).values()].map(
            (same) => same[0] !== undefined && <InDefinition key={JSON.stringify(same)} first={same[0]} all={same} />,
          )}
          {inResults.map(({ server, name, code, count: times, last }) => (
            <li
              key={`${server} ${name} ${code}`}
              className="flex flex-wrap items-center gap-x-2 gap-y-1 px-4 py-2 text-sm"
            >
              <Badge tone="warn">{code}</Badge>
              <Link
                to="/audit"
                search={{ callId: last.callId }}
                className="font-mono break-all text-accent hover:underline"
              >
                {name}
              </Link>
              <span className="text-soft">{t(overview.inResults, { count: times })}</span>
              <span className="ml-auto text-faint">
                <Time at={last.at} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

interface InDefinitionProps {
  readonly first: Overview["findings"][number];
  readonly all: Overview["findings"];
}

/** All findings in one definition. */
function InDefinition({ first: { server, kind, name }, all }: InDefinitionProps) {
  return (
    <li className="px-4 py-2 text-sm">
      <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
        {kind === "tool" ? (
          <Link to="/tools" search={{ tool: name }} className="font-mono break-all text-accent hover:underline">
            {name}
          </Link>
        ) : (
          <span className="font-mono break-all">{name}</span>
        )}
        <span className="text-soft">
          <Link to="/servers" search={{ server }} className="hover:underline">
            {server}
          </Link>
          {" · "}
          {t(overview.inDefinition)}
        </span>
      </div>
      <ul className="mt-1 flex flex-col gap-1">
        {all.map(({ code, severity, text }) => (
          <li key={`${code} ${text}`} className="flex gap-2">
            <span className="shrink-0">
              <Badge tone={severity === "high" ? "bad" : "warn"}>{code}</Badge>
            </span>
            <span className="line-clamp-2 min-w-0 break-words text-soft">{text}</span>
          </li>
        ))}
      </ul>
    </li>
  );
}

function Warnings({ warnings }: { readonly warnings: Overview["warnings"] }) {
  return (
    <Section title={t(overview.warnings)} flush>
      <ul className="divide-y divide-line">
        {warnings.map((warning, index) => (
          <li key={`${warning.message} ${index}`} className="flex items-start gap-2 px-4 py-2">
            <Icon name="warning" className="mt-0.5 size-4 text-warn" />
            <span className="min-w-0 break-words">
              {warning.server !== undefined && (
                <>
                  <Link
                    to="/servers"
                    search={{ server: warning.server }}
                    className="font-mono text-sm text-accent hover:underline"
                  >
                    {warning.server}
                  </Link>
                  {": "}
                </>
              )}
              {warning.message}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
