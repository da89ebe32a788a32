/** A server's changes of state, and its entry. */
import type { ServerDetail } from "../../../../src/contract/server-schemas.ts";
import { Code } from "../../components/code.tsx";
import { KeyValues } from "../../components/page.tsx";
import { StateDot } from "../../components/state-dot.tsx";
import { Empty } from "../../components/states.tsx";
import { Time } from "../../components/time.tsx";
import { FROM_WORDS } from "./server-words.ts";

interface TabProps {
  readonly server: ServerDetail;
}

export function HistoryTab({ server }: TabProps) {
  if (server.history.length === 0) return <Empty title="Nothing has happened yet" />;
  return (
    <ol aria-label="Changes of state, the newest first" className="max-h-[55dvh] divide-y divide-line overflow-y-auto">
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

function connectsWhen({ autoConnect, start }: ServerDetail): string {
  if (start === "lazy") return "when it is first used";
  return autoConnect ? "when the hub starts" : "on request";
}

export function ConfigTab({ server }: TabProps) {
  return (
    <div className="flex flex-col gap-4 p-4">
      <KeyValues
        rows={[
          ["Written in", `${FROM_WORDS[server.from]} (${server.from === "store" ? "store" : server.origin.file})`],
          ["Dialect", server.origin.dialect],
          ["Connects", connectsWhen(server)],
          [
            "Protocol",
            server.protocolVersion === null ? "not known yet" : `${server.protocolVersion} (${server.era ?? "?"})`,
          ],
          ["Capabilities", Object.keys(server.capabilities).join(", ") || "none known"],
        ]}
      />
      <Code text={JSON.stringify(server.config, undefined, 2)} label="Entry of the server" copy />
    </div>
  );
}
