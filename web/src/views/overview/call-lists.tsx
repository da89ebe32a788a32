/** Calls by server, tool, client and role, the slowest tools, and what failed and why. */
import { Link } from "@tanstack/react-router";
import type { Stats, StatsGroup, StatsProblem } from "../../../../src/contract/stats-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Section } from "../../components/page.tsx";
import { Sparkline } from "../../components/sparkline.tsx";
import { Empty } from "../../components/states.tsx";
import { Cell, RowHead, Table } from "../../components/table.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { Time } from "../../components/time.tsx";
import { t } from "../../messages/messages.ts";
import { overview } from "../../messages/overview.ts";
import { numberText, shareText } from "../../text.ts";
import type { Dimension } from "./overview.tsx";
import { durationText } from "./series.ts";

interface CallGroupsProps {
  readonly stats: Stats;
  readonly onShow: (by: Dimension, of: string) => void;
}

export function CallGroups({ stats, onShow }: CallGroupsProps) {
  const lists = [
    ["server", t(overview.servers), stats.servers],
    ["tool", t(overview.tools), stats.tools],
    ["client", t(overview.clients), stats.clients],
    ["role", t(overview.roles), stats.roles],
  ] as const;
  const shown = lists.filter(([, , groups]) => groups.length > 0);
  if (shown.length === 0) return null;
  return (
    <section aria-label={t(overview.by)} className="min-w-0 rounded-lg border border-line bg-panel">
      <h2 className="sr-only">{t(overview.by)}</h2>
      <Tabs
        label={t(overview.by)}
        tabs={shown.map(([by, label, groups]) => ({
          id: by,
          label,
          count: groups.length,
          content: <GroupTable by={by} label={label} groups={groups} onShow={onShow} />,
        }))}
      />
    </section>
  );
}

interface GroupTableProps extends Pick<CallGroupsProps, "onShow"> {
  readonly by: Dimension;
  readonly label: string;
  readonly groups: readonly StatsGroup[];
}

function GroupTable({ by, label, groups, onShow }: GroupTableProps) {
  return (
    <Table
      label={label}
      heads={[
        t(overview.name),
        t(overview.trend),
        { number: t(overview.calls) },
        { number: t(overview.errorRate) },
        { number: t(overview.refused) },
        { number: "p50" },
        { number: "p95" },
        { number: "p99" },
        { number: t(overview.lastCall) },
      ]}
    >
      {groups.map((group) => {
        const value = group[by] ?? "";
        const name = value === "" ? t(overview.nameless) : value;
        return (
          <tr key={`${group.server ?? ""} ${value}`}>
            <RowHead>
              <button
                type="button"
                title={t(overview.onlyThis, { name })}
                onClick={() => onShow(by, value)}
                className={`text-left font-normal break-all text-accent hover:underline ${by === "tool" ? "font-mono" : ""}`}
              >
                {name}
              </button>
            </RowHead>
            <Cell>
              <Sparkline values={group.series} />
            </Cell>
            <Cell number>{numberText(group.calls)}</Cell>
            <Cell number className={group.failed > 0 ? "text-bad" : ""}>
              {shareText(group.failed, group.calls)}
            </Cell>
            <Cell number>{numberText(group.refused)}</Cell>
            <Cell number>{durationText(group.p50)}</Cell>
            <Cell number>{durationText(group.p95)}</Cell>
            <Cell number>{durationText(group.p99)}</Cell>
            <Cell number>{group.last === null ? t(overview.never) : <Time at={group.last.at} />}</Cell>
          </tr>
        );
      })}
    </Table>
  );
}

export function Slowest({ stats }: { readonly stats: Stats }) {
  return (
    <Section title={t(overview.slowest)} flush>
      {stats.slowest.length === 0 ? (
        <Empty title={t(overview.noLatency)} icon="traffic" />
      ) : (
        <ul className="divide-y divide-line">
          {stats.slowest.map(({ server, tool = "", p95, slowest }) => (
            <li
              key={`${server ?? ""} ${tool}`}
              className="flex flex-wrap items-baseline gap-x-3 gap-y-0.5 px-4 py-1.5 text-sm"
            >
              <Link
                to="/tools"
                search={{ tool }}
                className="min-w-0 flex-1 basis-40 font-mono break-all text-accent hover:underline"
              >
                {tool}
              </Link>
              {slowest !== null && (
                <Link to="/audit" search={{ callId: slowest.callId }} className="text-faint hover:underline">
                  {t(overview.slowestCall, { ms: durationText(slowest.ms) })}
                </Link>
              )}
              <span className="whitespace-nowrap">p95 {durationText(p95)}</span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

interface ProblemsProps {
  readonly title: string;
  readonly none: string;
  readonly noneHow?: string;
  readonly problems: readonly StatsProblem[];
  /** Beginning of the range. */
  readonly since: string;
}

const SHOWN = 12;

/** Each leads to the records that it counts, and to the last of them. */
export function Problems({ title, none, noneHow, problems, since }: ProblemsProps) {
  return (
    <Section title={title} flush>
      {problems.length === 0 ? (
        <Empty title={none} icon="check">
          {noneHow}
        </Empty>
      ) : (
        <ul className="divide-y divide-line">
          {problems.slice(0, SHOWN).map(({ name, server, code, count, last }) => (
            <li
              key={`${server} ${name} ${code}`}
              className="flex flex-wrap items-center gap-x-3 gap-y-0.5 px-4 py-1.5 text-sm"
            >
              <Link
                to="/audit"
                search={{ name, outcome: code, since }}
                className="min-w-0 flex-1 basis-40 font-mono break-all text-accent hover:underline"
              >
                {name}
              </Link>
              <Badge tone={REFUSALS.has(code) ? "warn" : "bad"}>{code}</Badge>
              <span className="whitespace-nowrap">{t(overview.times, { count })}</span>
              <Link
                to="/audit"
                search={{ callId: last.callId }}
                className="whitespace-nowrap text-faint hover:underline"
              >
                {t(overview.lastOne)} <Time at={last.at} />
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

const REFUSALS: ReadonlySet<string> = new Set(["denied", "blocked", "rate_limited", "unauthorized"]);
