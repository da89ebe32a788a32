/** How a tool is used: over time, by whom, how long it takes, what failed last, and what its definition costs. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { StatsRange } from "../../../../src/contract/stats-ranges.ts";
import { KeyValues } from "../../components/page.tsx";
import { Loaded, Skeleton } from "../../components/states.tsx";
import { Time } from "../../components/time.tsx";
import { activity } from "../../messages/activity.ts";
import { t } from "../../messages/messages.ts";
import { useOperation } from "../../state/queries.ts";
import { bytesText, numberText, shareText } from "../../text.ts";
import { CallsChart, LatencyChart } from "../overview/call-charts.tsx";
import { Problems } from "../overview/call-lists.tsx";
import { RangeChoice } from "../overview/range-choice.tsx";
import { durationText } from "../overview/series.ts";

export function UsageTab({ name }: { readonly name: string }) {
  const [range, setRange] = useState<StatsRange>("24h");
  const query = useOperation("getStats", { range, tool: name }, { keep: true, refetchInterval: 10_000 });
  const costs = useOperation("getTokenCosts", {});
  const tokens = costs.data?.tools.find((tool) => tool.name === name)?.tokens;
  return (
    <div className="flex flex-col gap-4 p-4">
      <RangeChoice value={range} onChange={setRange} />
      <Loaded query={query} skeleton={<Skeleton lines={6} label={t(activity.loading)} />}>
        {({ total, clients, failures, since, ...stats }) => (
          <>
            <KeyValues
              rows={[
                [t(activity.calls), numberText(total.calls)],
                [t(activity.errors), shareText(total.failed, total.calls)],
                [t(activity.duration), `${durationText(total.p50)} · p95 ${durationText(total.p95)}`],
                [t(activity.size), total.resultBytes === null ? "–" : bytesText(total.resultBytes)],
                [
                  t(activity.lastCall),
                  total.last === null ? (
                    t(activity.none)
                  ) : (
                    <Link to="/audit" search={{ callId: total.last.callId }} className="text-accent hover:underline">
                      <Time at={total.last.at} />
                    </Link>
                  ),
                ],
                [
                  t(activity.tokens),
                  tokens === undefined ? (
                    "–"
                  ) : (
                    <span title={t(activity.tokensHow)}>
                      {t(activity.tokensValue, { count: tokens })}
                      <span className="block text-sm text-faint">{t(activity.tokensHow)}</span>
                    </span>
                  ),
                ],
              ]}
            />
            <CallsChart stats={{ ...stats, total, clients, failures, since }} group="tool" />
            <LatencyChart stats={{ ...stats, total, clients, failures, since }} group="tool" />
            <section aria-label={t(activity.callers)}>
              <h3 className="mb-1 font-semibold">{t(activity.callers)}</h3>
              {clients.length === 0 ? (
                <p className="text-soft">{t(activity.noCallers)}</p>
              ) : (
                <ul className="divide-y divide-line rounded-md border border-line">
                  {clients.map(({ client = "", calls, failed, last }) => (
                    <li key={client} className="flex flex-wrap items-baseline gap-x-3 px-3 py-1.5 text-sm">
                      <span className="min-w-0 flex-1 break-words">{client === "" ? t(activity.unnamed) : client}</span>
                      <span>{numberText(calls)}</span>
                      <span className={failed > 0 ? "text-bad" : "text-faint"}>{shareText(failed, calls)}</span>
                      {last !== null && (
                        <span className="text-faint">
                          <Time at={last.at} />
                        </span>
                      )}
                    </li>
                  ))}
                </ul>
              )}
            </section>
            <Problems title={t(activity.lastErrors)} none={t(activity.noErrors)} problems={failures} since={since} />
          </>
        )}
      </Loaded>
    </div>
  );
}
