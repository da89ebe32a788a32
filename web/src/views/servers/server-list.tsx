/** The servers, each with its state and, when it is red, the reason. */
import { Link } from "@tanstack/react-router";
import { type ReactNode, useRef } from "react";
import type { OutputOf } from "../../../../src/contract/operations.ts";
import { Badge } from "../../components/badge.tsx";
import { Icon } from "../../components/icon.tsx";
import { useRoving } from "../../components/roving.ts";
import { Sparkline } from "../../components/sparkline.tsx";
import { StateDot } from "../../components/state-dot.tsx";
import { logins } from "../../messages/logins.ts";
import { t } from "../../messages/messages.ts";
import { rules } from "../../messages/rules.ts";
import { serverWords } from "../../messages/server-words.ts";
import { shell } from "../../messages/shell.ts";
import { LoginButton } from "../logins/login-button.tsx";
import { ConnectButton } from "./connect-button.tsx";
import { originText, type RecentCalls, TRANSPORT_WORDS } from "./server-words.ts";

type ServerInfo = OutputOf<"listServers">["servers"][number];

interface ServerListProps {
  readonly servers: readonly ServerInfo[];
  /** Undefined for a server of which it is not known. */
  readonly recentCalls: (serverId: string) => RecentCalls | undefined;
  readonly chosen: string | undefined;
  readonly selected: ReadonlySet<string>;
  readonly onSelect: (id: string, isOn: boolean) => void;
}

export function ServerList({ servers, recentCalls, chosen, selected, onSelect }: ServerListProps) {
  const frame = useRef<HTMLUListElement>(null);
  const { onKeyDown, onFocus } = useRoving(frame, servers.length);
  return (
    <ul
      ref={frame}
      aria-label={t(shell.servers)}
      onKeyDown={onKeyDown}
      onFocus={onFocus}
      className="divide-y divide-line rounded-lg border border-line bg-panel"
    >
      {servers.map((server, index) => (
        <ServerLine
          key={server.id}
          index={index}
          server={server}
          recent={recentCalls(server.id)}
          chosen={server.id === chosen}
          narrow={chosen !== undefined}
          selected={selected.has(server.id)}
          onSelect={(isOn) => onSelect(server.id, isOn)}
        />
      ))}
    </ul>
  );
}

interface LineProps {
  readonly index: number;
  readonly server: ServerInfo;
  readonly recent: RecentCalls | undefined;
  readonly chosen: boolean;
  /** The details stand beside the list. */
  readonly narrow: boolean;
  readonly selected: boolean;
  readonly onSelect: (isOn: boolean) => void;
}

function ServerLine({ index, server, recent, chosen, narrow, selected, onSelect }: LineProps) {
  return (
    <li
      data-index={index}
      className={`relative flex flex-wrap items-center min-h-11 gap-x-4 gap-y-1 px-4 py-2 first:rounded-t-lg last:rounded-b-lg hover:bg-hover ${chosen ? "bg-accent-wash" : ""}`}
    >
      <input
        type="checkbox"
        aria-label={t(rules.selectServer, { server: server.name })}
        checked={selected}
        onChange={(event) => onSelect(event.target.checked)}
        // Above the link that covers the line.
        className="relative z-10 size-4 accent-accent"
      />
      <div className={`flex text-sm ${narrow ? "" : "w-26"}`}>
        <StateDot state={server.state} sleeping={server.sleeping} bare={narrow} />
      </div>
      <div className="min-w-0 flex-1">
        <Link
          from="/servers"
          to="/servers"
          search={(old) => ({ ...old, server: server.id, tab: undefined })}
          aria-current={chosen ? "true" : undefined}
          // The whole line is the link.
          className="font-medium break-words after:absolute after:inset-0"
        >
          {server.name}
        </Link>
        {server.name !== server.id && (
          <span className="ml-2 hidden font-mono text-sm text-faint sm:inline">{server.id}</span>
        )}
      </div>
      <div className="flex items-center gap-3 text-sm text-soft">
        {server.warnings.length > 0 && (
          <span className="inline-flex items-center gap-1 text-warn" title={server.warnings.join("\n")}>
            <Icon name="warning" />
            <span className="sr-only">{t(serverWords.warnings, { count: server.warnings.length })}</span>
          </span>
        )}
        {server.auth?.state === "login_needed" &&
          (narrow ? (
            <Badge tone="warn">{t(logins.needed)}</Badge>
          ) : (
            <span className="relative z-10">
              <LoginButton serverId={server.id} />
            </span>
          ))}
        {!narrow && (
          <>
            <span className="hidden w-12 text-center sm:inline">
              <Badge>{TRANSPORT_WORDS[server.transport]}</Badge>
            </span>
            <span className="hidden w-32 truncate lg:inline" title={server.origin.file}>
              {originText(server.origin)}
            </span>
            {server.node !== undefined && (
              <span className="hidden max-w-32 truncate lg:inline" title={t(serverWords.runsOn, { node: server.node })}>
                {t(serverWords.onNode, { node: server.node })}
              </span>
            )}
            {recent !== undefined && <Recent recent={recent} />}
          </>
        )}
        <span className="min-w-16 shrink-0 text-right whitespace-nowrap sm:min-w-28">
          {/* The number is unknown for a server that is not connected. */}
          {(server.toolCount > 0 || server.state === "ready") && t(serverWords.tools, { count: server.toolCount })}
        </span>
        {!narrow && (
          <span className="relative z-10 hidden w-32 text-right sm:inline">
            <ConnectButton server={server} />
          </span>
        )}
      </div>
      {server.progress !== undefined && (
        <BelowName narrow={narrow}>
          <p className="break-words text-soft" role="status">
            {server.progress}
          </p>
        </BelowName>
      )}
      {server.lastError !== null && (
        <BelowName narrow={narrow}>
          <p className="line-clamp-3 break-words text-bad">{server.lastError}</p>
          {server.hint !== undefined && <p className="break-words text-soft">{server.hint}</p>}
        </BelowName>
      )}
    </li>
  );
}

function BelowName({ narrow, children }: { readonly narrow: boolean; readonly children: ReactNode }) {
  return (
    <div className="flex w-full text-sm">
      <span aria-hidden="true" className={`shrink-0 ${narrow ? "w-8" : "w-38 max-sm:hidden"}`} />
      <div className="min-w-0">{children}</div>
    </div>
  );
}

function Recent({ recent: { calls, series } }: { readonly recent: RecentCalls }) {
  const text = t(serverWords.lastDay, { count: calls });
  return (
    <span title={text} className="hidden sm:inline">
      <Sparkline values={series} className="h-5 w-20" />
      <span className="sr-only">{text}</span>
    </span>
  );
}
