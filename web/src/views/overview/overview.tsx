import { Link } from "@tanstack/react-router";
import type { Overview } from "../../../../src/contract/activity-schemas.ts";
import { Icon } from "../../components/icon.tsx";
import { Page, Section } from "../../components/page.tsx";
import { STATE_WORDS, StateDot, type ServerState } from "../../components/state-dot.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { Time } from "../../components/time.tsx";
import { useOperation } from "../../state/queries.ts";
import { countText } from "../../text.ts";
import { sessionText } from "../approvals/answer-words.ts";
import { CallsChart, LatencyChart } from "./charts.tsx";
import { FirstSteps } from "./first-steps.tsx";
import { Incidents } from "./incidents.tsx";

export function OverviewView() {
  // Minutes pass without events.
  const query = useOperation("overview", {}, { refetchInterval: 30_000 });
  return (
    <Page title="Overview" description={query.data !== undefined && <About overview={query.data} />}>
      <FirstSteps />
      <Loaded query={query} skeleton={<Skeleton lines={12} label="Loading the overview" />}>
        {(overview) => (
          <>
            <Numbers overview={overview} />
            {overview.pendingApprovals > 0 && <Pending count={overview.pendingApprovals} />}
            <div className="grid gap-4 lg:grid-cols-2">
              <CallsChart minutes={overview.minutes} />
              <LatencyChart minutes={overview.minutes} />
              <Incidents title="Recent denials" incidents={overview.denials} none="Nothing was denied" />
              <Incidents title="Recent findings" incidents={overview.findings} none="The guard found nothing" />
            </div>
            {overview.warnings.length > 0 && <Warnings warnings={overview.warnings} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function About({ overview }: { readonly overview: Overview }) {
  const store = { sqlite: "stored in SQLite", postgres: "stored in PostgreSQL", none: "nothing is stored" }[
    overview.store
  ];
  return (
    <>
      Version {overview.version}, started <Time at={overview.startedAt} />, {store}
      {overview.node !== undefined && `. Calls and sessions are those of this node, ${overview.node}`}
    </>
  );
}

function Numbers({ overview }: { readonly overview: Overview }) {
  // Keys of STATE_WORDS are the states.
  const states = (Object.keys(STATE_WORDS) as ServerState[]).filter((state) => (overview.servers[state] ?? 0) > 0);
  const total = Object.values(overview.servers).reduce((sum, count) => sum + count, 0);
  return (
    <div className="grid gap-4 md:grid-cols-[minmax(0,1fr)_auto]">
      <Section title={`Servers (${total})`} flush>
        {total === 0 ? (
          <Empty
            title="No servers yet"
            action={
              <Link to="/servers" search={{ add: "1" }} className="text-accent underline">
                Add the first one
              </Link>
            }
          />
        ) : (
          <ul className="flex flex-wrap gap-2 p-3">
            {states.map((state) => (
              <li key={state}>
                <Link
                  to="/servers"
                  search={{ state }}
                  className="flex min-h-9 items-center gap-2 rounded-md border border-line px-3 hover:bg-hover"
                >
                  <StateDot state={state} />
                  <span className="font-semibold">{overview.servers[state]}</span>
                </Link>
              </li>
            ))}
          </ul>
        )}
      </Section>
      <div className="grid grid-cols-3 gap-2 md:gap-4">
        <Figure to="/tools" label="Tools" value={overview.tools} />
        <Figure to="/skills" label="Skills" value={overview.skills} />
        <Figure
          to="/sessions"
          label={overview.node === undefined ? "Sessions" : "Sessions here"}
          value={overview.sessions}
        />
      </div>
    </div>
  );
}

interface FigureProps {
  readonly to: "/tools" | "/skills" | "/sessions";
  readonly label: string;
  readonly value: number;
}

function Figure({ to, label, value }: FigureProps) {
  return (
    <Link
      to={to}
      className="flex flex-col justify-center rounded-lg border border-line bg-panel px-4 py-3 hover:bg-hover md:min-w-28"
    >
      <span className="text-soft">{label}</span>
      <span className="text-xl font-semibold">{value.toLocaleString("en")}</span>
    </Link>
  );
}

function Pending({ count }: { readonly count: number }) {
  const pending = useOperation("listApprovals", { status: "pending", limit: 100 });
  const first = pending.data?.approvals.slice(0, 3) ?? [];
  return (
    <section aria-label="Pending approvals" className="rounded-lg border border-warn bg-warn-wash px-4 py-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="flex items-center gap-2 font-semibold text-warn">
          <Icon name="approvals" />
          {countText(count, "call waits", "calls wait")} for your answer
        </h2>
        <Link to="/approvals" className="font-medium text-accent underline">
          Answer
        </Link>
      </div>
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
    </section>
  );
}

function Warnings({ warnings }: { readonly warnings: Overview["warnings"] }) {
  return (
    <Section title="Warnings" flush>
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
