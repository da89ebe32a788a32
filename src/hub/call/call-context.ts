import type { CancelSignal } from "../../base/async.ts";
import type { Clock } from "../../base/clock.ts";
import type { CatalogReader } from "../../catalog/catalog.ts";
import { expandKnownPart } from "../../catalog/uri-template.ts";
import type { CapabilityOrigin, ToolCapability } from "../../model/capability.ts";
import type { ScanContent } from "../../guard/scan-texts.ts";
import type { GuardRules, Limits as LimitValues } from "../../model/config.ts";
import type { AskCallback, Decision } from "../../model/decision.ts";
import type { Finding, Place } from "../../model/finding.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ClientInfo } from "../../model/client-info.ts";
import type { Use, UseContext, UseOptions } from "../../model/source.ts";
import type { CallLimits } from "../../policy/call-limits.ts";
import type { Provider } from "../../schemas/normalize.ts";
import type { Session } from "../../sessions/session.ts";
import type { AuditSink, StartRecord } from "../../telemetry/call-record.ts";
import type { Tracing } from "../../telemetry/tracing.ts";
import type { SearchTools } from "../view/search-tools.ts";
import type { AccessControl, CallView } from "./access-control.ts";
import type { Approvals } from "./approvals.ts";
import type { HookChain } from "./hooks.ts";
import type { Passages } from "./passages.ts";
import type { Taints } from "./taints.ts";
import type { Target, UnavailableServers, UnlistedResources } from "./locate.ts";

export interface CallOptions extends UseOptions {
  readonly signal?: CancelSignal | undefined;
  /** The capability that the name has to lead to: if it means another one by now, nothing is called. */
  readonly origin?: CapabilityOrigin | undefined;
  /** The program that calls, if it is not that of the session. */
  readonly clientInfo?: ClientInfo | undefined;
}

/** The parts that a call passes, in the order in which it does. */
export interface CallPath {
  readonly clock: Clock;
  /** The hub's catalog, with what the session brought over it. */
  readonly catalog: CatalogReader;
  /** Servers that are not connected, for names that no other source has. */
  readonly unavailable: UnavailableServers;
  /** Resources that no server lists. */
  readonly unlisted: UnlistedResources;
  /** Whether a URI is below a skill of the user's own. */
  readonly isOwnSkillUri: (uri: string) => boolean;
  /** The tool that a session has under a name: an in-process one as a factory made it for the session. */
  readonly localTool: (session: Session, name: string, found: ToolCapability | undefined) => ToolCapability | undefined;
  /** Names this session may see, for near matches. */
  readonly visibleNames: (session: Session, kind: Use["kind"]) => readonly string[];
  readonly searchTools?: SearchTools | undefined;
  readonly access: AccessControl;
  readonly approvals: Approvals;
  readonly taints: Taints;
  readonly limits: CallLimits;
  readonly limitValues: LimitValues;
  readonly hooks: HookChain;
  readonly passages: Passages;
  readonly guard: GuardRules;
  /** Reads texts for attacks: by the built-in rules, and by the detectors of the config. */
  readonly scan: ScanContent;
  /** Whether a detector of the config reads the texts of a place, which takes time. */
  readonly detects: (place: Place) => boolean;
  /** Sources whose results are taken as they are. */
  readonly isTrusted: (source: string) => boolean;
  /** The name that people and models know a source by. */
  readonly displayName: (source: string) => string;
  /** Where the person behind a session can log in at a server; undefined if they cannot. */
  readonly loginLink: (session: Session, server: string) => string | undefined;
  /** The client was asked to open it, with a question of this id. */
  readonly loginAsked: (elicitationId: string, session: Session, server: string) => void;
  /** The text of a fixed argument with its references resolved. `server`: the one whose entry it is in, if it is in one. */
  readonly resolve: (
    text: string,
    of: { readonly user: string | undefined; readonly server: string | undefined },
  ) => Promise<string>;
  /** Masks secrets in what an error or a progress report says. */
  readonly mask: <Value>(value: Value) => Value;
  /** Masks values of secrets in what a source returns, unless the config says otherwise. */
  readonly maskResult: <Value>(value: Value) => Value;
  readonly audit: AuditSink;
  /** Spans for an operator's OpenTelemetry SDK. */
  readonly tracing?: Tracing | undefined;
}

/** One call from the door to the source: what was asked for, and what is learned of it for the record. */
export interface CallContext extends UseContext {
  readonly path: CallPath;
  readonly session: Session;
  readonly origin?: CapabilityOrigin | undefined;
  readonly clientInfo: ClientInfo | undefined;
  readonly startedAt: number;
  /** The public name or URI. */
  readonly name: string;
  /** In public names. Once it was shown for approval it is a frozen copy. */
  use: Use;
  target: Target | undefined;
  decision: Decision | undefined;
  /** Written before anything is sent; the start of the record that the call ends in. */
  begun: StartRecord | undefined;
  /** How long it waited for approval. */
  waitedMs: number;
  resultBytes: number;
  findings: readonly Finding[];
  forgedMarkers: number;
  readonly notes: Record<string, unknown>;
  /** Reports that a detector still reads. They are passed on in their order, before the call ends. */
  reports: Promise<void> | undefined;
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

/** The name that rules are matched against: a completion is about the URI that its template has with what was typed so far. */
export function ruledNameOf({ use, name }: Pick<CallContext, "use" | "name">): string {
  if (use.kind !== "completion" || use.ref.type !== "ref/resource") return name;
  const { ref, argument, context } = use;
  const known = isJsonObject(context?.["arguments"]) ? context["arguments"] : {};
  return expandKnownPart(ref.uri, { ...known, [argument.name]: argument.value });
}

export function argumentsOf(use: Use): Readonly<JsonObject> {
  return (use.kind === "tool" || use.kind === "prompt" ? use.arguments : undefined) ?? {};
}

export interface CallRequest extends CallOptions {
  readonly name: string;
  readonly arguments?: JsonObject;
}

/** A call that is only thought of, and the circumstances in which it would be made. */
export interface ExplainRequest extends Omit<CallView, "use" | "client"> {
  readonly name: string;
  readonly arguments?: JsonObject | undefined;
  /** The name that the client program gives itself; that of the session if absent. */
  readonly client?: string | undefined;
  /** The hub's own if absent. */
  readonly session?: Session | undefined;
}

export interface ReadRequest extends CallOptions {
  readonly uri: string;
}

export interface PromptRequest extends CallOptions {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, string>>;
}

type Completion = Extract<Use, { kind: "completion" }>;

export interface CompleteRequest extends CallOptions {
  readonly ref: Completion["ref"];
  readonly argument: Completion["argument"];
  readonly context?: JsonObject;
}

/** Which tools of those that a session sees are offered. */
export interface OfferOptions {
  /** The task of the agent, such as its prompt: above `max` the tools that fit it best are offered. */
  readonly query?: string | undefined;
  /** How many at most, search tools included; the config's `tools.max` if absent. */
  readonly max?: number | undefined;
  /** Those that come before others where there are too many. */
  readonly first?: ((tool: ToolCapability) => boolean) | undefined;
  /** Those that are not offered, and can still be called by name. */
  readonly without?: ((tool: ToolCapability) => boolean) | undefined;
  /** With the tools that are only for pages of their server (MCP Apps): for clients that show such pages. */
  readonly apps?: boolean | undefined;
}

export interface ToolsOptions extends OfferOptions {
  /** The model provider whose schema rules apply; `raw` (the default) leaves schemas and content untouched. */
  readonly for?: Provider;
  /** Whose view it is and who calls; the hub's own session if absent. */
  readonly session?: Session;
  /** A longer text is cut in its middle and kept whole for the session; the config's `limits.inlineBytes` if absent. */
  readonly inlineBytes?: number | undefined;
  /** Answers if a call needs approval, by the id given to `execute`; the session's own callback if absent or undefined. */
  readonly onAsk?: ((toolCallId: string) => AskCallback | undefined) | undefined;
}
