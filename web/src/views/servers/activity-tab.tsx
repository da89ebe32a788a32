/** How a server is used, and what its process uses. */
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

const REFRESH_MS = 10_000;

export function ActivityTab({ serverId }: { readonly serverId: string }) {
  const [range, setRange] = useState<StatsRange>("24h");
  const query = useOperation("getStats", { range, server: serverId }, { keep: true, refetchInterval: REFRESH_MS });
  return (
    <div className="flex flex-col gap-4 p-4">
      <Process serverId={serverId} />
      <RangeChoice value={range} onChange={setRange} />
      <Loaded query={query} skeleton={<Skeleton lines={6} label={t(activity.loading)} />}>
        {(stats) => (
          <>
            <KeyValues
              rows={[
                [t(activity.calls), numberText(stats.total.calls)],
                [t(activity.errors), shareText(stats.total.failed, stats.total.calls)],
                [
                  t(activity.lastCall),
                  stats.total.last === null ? t(activity.none) : <Time at={stats.total.last.at} />,
                ],
                [t(activity.duration), durationText(stats.total.p50)],
              ]}
            />
            <CallsChart stats={stats} group="server" />
            <LatencyChart stats={stats} group="server" />
            <Problems
              title={t(activity.lastErrors)}
              none={t(activity.noErrors)}
              problems={stats.failures}
              since={stats.since}
            />
          </>
        )}
      </Loaded>
    </div>
  );
}

function Process({ serverId }: { readonly serverId: string }) {
  const query = useOperation("getServerProcess", { serverId }, { keep: true, refetchInterval: REFRESH_MS });
  return (
    <Loaded query={query} skeleton={<Skeleton lines={3} label={t(activity.loading)} />}>
      {({ process, restarts, connectedAt }) => (
        <div className="flex flex-col gap-1">
          <KeyValues
            rows={[
              [t(activity.connected), connectedAt === null ? t(activity.notRunning) : <Time at={connectedAt} />],
              [t(activity.restarts), numberText(restarts)],
              ...(process === null
                ? []
                : ([
                    [t(activity.uptime), <Time key="at" at={process.startedAt} />],
                    [
                      t(activity.memory),
                      `${bytesText(process.memoryBytes)} · ${t(activity.processes, { count: process.processes })}`,
                    ],
                    [t(activity.cpu), t(activity.ofCore, { share: shareText(process.cpuPercent, 100) })],
                  ] as const)),
            ]}
          />
          {process === null && <p className="text-sm text-faint">{t(activity.noProcess)}</p>}
        </div>
      )}
    </Loaded>
  );
}
