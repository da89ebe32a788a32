import type { CatalogReader } from "../catalog/catalog-reader.ts";
import { filledIn } from "../catalog/uri-template.ts";
import type { AskCallback } from "../model/ask.ts";
import type { CapabilityOrigin } from "../model/capability.ts";
import type { CancelSignal } from "../model/cancel.ts";
import type { Clock } from "../model/clock.ts";
import type { GuardRules, Limits as LimitValues } from "../model/config.ts";
import type { Decision } from "../model/decision.ts";
import type { Finding } from "../model/finding.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Progress } from "../model/protocol.ts";
import type { ClientSide } from "../model/session.ts";
import type { InputRound, Use, UseContext } from "../model/source.ts";
import type { Limits } from "../policy/limits.ts";
import type { Session } from "../sessions/session.ts";
import type { AuditSink } from "../telemetry/call-record.ts";
import type { Tracing } from "../telemetry/tracing/tracing.ts";
import type { AbsentServers } from "./absent-servers.ts";
import type { Approvals } from "./approvals.ts";
import type { Gate } from "./gate.ts";
import type { HookChain } from "./hooks.ts";
import type { SearchTools } from "./search-tools.ts";
import type { Target } from "./target.ts";
import type { UnlistedResources } from "./unlisted-resources.ts";

export interface CallOptions {
  readonly signal?: CancelSignal | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** `_meta` that goes upstream with the request, such as trace context. */
  readonly meta?: JsonObject | undefined;
  /** Who answers what the source asks; the session's own client if absent. */
  readonly client?: ClientSide | undefined;
  readonly onNotice?: UseContext["onNotice"] | undefined;
  readonly logLevel?: string | undefined;
  readonly input?: InputRound | undefined;
  /** Answers if the call needs a yes; the session's own callback, or the hub's, if absent. */
  readonly onAsk?: AskCallback | undefined;
  /** Params of the request that only the source can make sense of. */
  readonly extra?: JsonObject | undefined;
  /** Keeps a result above `limits.resultBytes` for the session, and gives a short one that says where it can be read. */
  readonly keepLarge?: boolean | undefined;
  /** What the name has to lead to: where it means something else by now, nothing is called. */
  readonly origin?: CapabilityOrigin | undefined;
  /** Who reads the result: an agent's model gets untrusted text between boundary markers. */
  readonly audience?: "agent" | undefined;
}

/** The parts that a call passes, in the order in which it does. */
export interface CallPath {
  readonly clock: Clock;
  /** What names stand for to a session: the hub's catalog, with what the session brought over it. */
  readonly catalogOf: (session: Session) => CatalogReader;
  /** Servers that are not up, for names that nobody else has. */
  readonly absent: AbsentServers;
  /** Resources that no server lists. */
  readonly unlisted: UnlistedResources;
  /** Names this session may see, for near matches. */
  /** Whether a URI stands below a skill of the user's own. */
  readonly isOfOwnSkill: (uri: string) => boolean;
  readonly visibleNames: (session: Session, kind: Use["kind"]) => readonly string[];
  readonly searchTools?: SearchTools | undefined;
  readonly gate: Gate;
  readonly approvals: Approvals;
  readonly limits: Limits;
  readonly limitValues: LimitValues;
  readonly hooks: HookChain;
  readonly guard: GuardRules;
  /** Sources whose results are taken as they are. */
  readonly isTrusted: (source: string) => boolean;
  /** What people and models know a source by. */
  readonly calledName: (source: string) => string;
  /** Masks secrets in what an error or a progress report says. */
  readonly mask: <Value>(value: Value) => Value;
  /** Masks values of secrets in what a source returns, unless the config says otherwise. */
  readonly maskResult: <Value>(value: Value) => Value;
  readonly audit: AuditSink;
  /** Spans for an operator's OpenTelemetry SDK. */
  readonly tracing?: Tracing | undefined;
}

/** One call on its way: what was asked, and what is learned of it for the record. */
export interface CallInProgress {
  readonly id: string;
  readonly session: Session;
  /** In public names. What was shown to somebody who was asked is a frozen copy from then on. */
  use: Use;
  readonly startedAt: number;
  readonly signal: AbortSignal;
  readonly onAsk: AskCallback | undefined;
  target: Target | undefined;
  decision: Decision | undefined;
  resultBytes: number;
  findings: readonly Finding[];
  readonly notes: Record<string, unknown>;
}

export function publicNameOf(use: Use): string {
  switch (use.kind) {
    case "tool":
    case "prompt":
      return use.name;
    case "resource":
    case "subscribe":
    case "unsubscribe":
      return use.uri;
    case "completion":
      return use.ref.type === "ref/prompt" ? use.ref.name : use.ref.uri;
  }
}

/** What rules are matched against: a completion is about the URI that its template has with what was typed so far. */
export function ruledNameOf(use: Use): string {
  if (use.kind !== "completion" || use.ref.type !== "ref/resource") return publicNameOf(use);
  const { ref, argument, context } = use;
  const known = isJsonObject(context?.["arguments"]) ? context["arguments"] : {};
  return filledIn(ref.uri, { ...known, [argument.name]: argument.value });
}

export function argumentsOf(use: Use): Readonly<JsonObject> {
  return use.kind === "tool" || use.kind === "prompt" ? use.arguments : {};
}
