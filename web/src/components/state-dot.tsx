/** The state of a server as colour, shape and word. */
import type { ServerDetail } from "../../../src/contract/server-schemas.ts";
import { components } from "../messages/components.ts";
import { type Message, t } from "../messages/messages.ts";

export type ServerState = ServerDetail["state"];

/** States that need attention come first. */
export const STATE_WORDS: Readonly<Record<ServerState, Message>> = {
  failed: components.failed,
  restarting: components.restarting,
  degraded: components.degraded,
  connecting: components.connecting,
  ready: components.ready,
  idle: components.idle,
  closed: components.closed,
  disabled: components.disabled,
};

interface StateDotProps {
  readonly state: ServerState;
  /** It is idle until it is used. */
  readonly sleeping?: boolean | undefined;
  /** The word is for screen readers only. */
  readonly bare?: boolean;
}

/** A filled disc, a ring, a half disc, a cross, a dash, a crescent: told apart without colour. */
function Shape({ state, sleeping }: Pick<StateDotProps, "state" | "sleeping">) {
  if (sleeping === true) return <path d="M7.4 1.2a5 5 0 1 0 3.4 6.9 4.2 4.2 0 0 1-3.4-6.9z" fill="var(--faint)" />;
  switch (state) {
    case "ready":
      return <circle cx="6" cy="6" r="5" fill="var(--ok)" />;
    case "degraded":
      return <path d="M6 1l5 9.5H1z" fill="var(--warn)" />;
    case "connecting":
    case "restarting":
      return (
        <>
          <circle cx="6" cy="6" r="4.2" fill="none" stroke="var(--info)" strokeWidth="1.6" />
          <path d="M6 1.8a4.2 4.2 0 0 1 0 8.4z" fill="var(--info)" />
        </>
      );
    case "failed":
      return <path d="M2 2l8 8M10 2l-8 8" stroke="var(--bad)" strokeWidth="2.4" strokeLinecap="round" />;
    case "idle":
      return <circle cx="6" cy="6" r="4.2" fill="none" stroke="var(--faint)" strokeWidth="1.6" />;
    case "disabled":
    case "closed":
      return <path d="M2 6h8" stroke="var(--faint)" strokeWidth="2.4" strokeLinecap="round" />;
  }
}

export function StateDot({ state, sleeping, bare = false }: StateDotProps) {
  const moving = state === "connecting" || state === "restarting";
  const word = t(sleeping === true ? components.asleep : STATE_WORDS[state]);
  const title = sleeping === true ? t(components.asleepHow) : word;
  return (
    <span className="inline-flex items-center gap-1.5 whitespace-nowrap" title={title}>
      <svg aria-hidden="true" viewBox="0 0 12 12" className={`size-3 shrink-0 ${moving ? "animate-spin" : ""}`}>
        <Shape state={state} sleeping={sleeping} />
      </svg>
      <span className={bare ? "sr-only" : ""}>{word}</span>
    </span>
  );
}
