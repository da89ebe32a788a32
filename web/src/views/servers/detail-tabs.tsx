/** A server's changes of state, and its entry. */
import type { ServerDetail } from "../../../../src/contract/server-schemas.ts";
import { Code } from "../../components/code.tsx";
import { KeyValues } from "../../components/page.tsx";
import { StateDot } from "../../components/state-dot.tsx";
import { Empty } from "../../components/states.tsx";
import { Time } from "../../components/time.tsx";
import { type Message, t } from "../../messages/messages.ts";
import { serverWords } from "../../messages/server-words.ts";
import { FROM_WORDS } from "./server-words.ts";

interface TabProps {
  readonly server: ServerDetail;
}

export function HistoryTab({ server }: TabProps) {
  if (server.history.length === 0) return <Empty title={t(serverWords.nothingYet)} />;
  return (
    <ol aria-label={t(serverWords.historyLabel)} className="max-h-[60dvh] divide-y divide-line overflow-y-auto">
      {server.history.toReversed().map((event, index) => (
        <li key={`${event.at} ${index}`} className="flex flex-wrap items-baseline gap-x-4 px-4 py-2 text-sm">
          <span className="w-26">
            <StateDot state={event.state} />
          </span>
          <span className="text-faint">
            <Time at={event.at} clock /> · <Time at={event.at} />
          </span>
          {event.reason !== undefined && <span className="w-full break-words text-soft">{event.reason}</span>}
        </li>
      ))}
    </ol>
  );
}

function connectsWhen({ autoConnect, start }: ServerDetail): Message {
  if (start === "lazy") return serverWords.whenUsed;
  return autoConnect ? serverWords.whenHubStarts : serverWords.onRequest;
}

export function ConfigTab({ server }: TabProps) {
  return (
    <div className="flex flex-col gap-4 p-4">
      <KeyValues
        rows={[
          [
            t(serverWords.writtenIn),
            `${t(FROM_WORDS[server.from])} (${server.from === "store" ? t(serverWords.store) : server.origin.file})`,
          ],
          [t(serverWords.dialect), server.origin.dialect],
          [t(serverWords.connects), t(connectsWhen(server))],
          [
            t(serverWords.protocol),
            server.protocolVersion === null
              ? t(serverWords.notKnown)
              : `${server.protocolVersion} (${server.era ?? "?"})`,
          ],
          [t(serverWords.capabilities), Object.keys(server.capabilities).join(", ") || t(serverWords.noneKnown)],
        ]}
      />
      <Code text={JSON.stringify(server.config, undefined, 2)} label={t(serverWords.entry)} copy />
    </div>
  );
}
