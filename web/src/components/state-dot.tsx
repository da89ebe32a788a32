/** The state of a server as colour, shape and word. */
import type { ServerDetail } from "../../../src/contract/server-schemas.ts";

export type ServerState = ServerDetail["state"];

/** States that need attention come first. */
export const STATE_WORDS: Readonly<Record<ServerState, string>> = {
  failed: "Failed",
  restarting: "Restarting",
  degraded: "Degraded",
  connecting: "Connecting",
  ready: "Ready",
  idle: "Idle",
  closed: "Closed",
  disabled: "Disabled",
};

/** A filled disc, a ring, a half disc, a cross, a dash: told apart without colour. */
function Shape({ state }: { readonly state: ServerState }) {
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

/** With `bare` the word is for screen readers only. */
export function StateDot({ state, bare = false }: { readonly state: ServerState; readonly bare?: boolean }) {
  const moving = state === "connecting" || state === "restarting";
  return (
    <span className="inline-flex items-center gap-1.5 whitespace-nowrap" title={STATE_WORDS[state]}>
      <svg aria-hidden="true" viewBox="0 0 12 12" className={`size-3 shrink-0 ${moving ? "animate-spin" : ""}`}>
        <Shape state={state} />
      </svg>
      <span className={bare ? "sr-only" : ""}>{STATE_WORDS[state]}</span>
    </span>
  );
}
