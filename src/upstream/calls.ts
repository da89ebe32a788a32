/** Runs one Use on one Link: params, headers, timeouts, and the rounds in which a modern server asks back. */
import type { JsonObject } from "../model/json.ts";
import { CLIENT_CAPABILITIES_KEY, LOG_LEVEL_KEY, type ToolDefinition } from "../model/protocol.ts";
import { calledName, type ServerSpec } from "../model/server-spec.ts";
import type { ClientSide } from "../model/session.ts";
import type { InputRound, Use, UseContext } from "../model/source.ts";
import { modernCapabilities } from "./client-offer.ts";
import type { ConnectionDeps } from "./connection-deps.ts";
import { completeInput } from "./input-rounds.ts";
import type { Link } from "./link.ts";
import { withOfferedAnswers, withOfferedRoots } from "./offered-roots.ts";
import { paramHeaders } from "./param-headers.ts";
import type { RequestOptions } from "./request-options.ts";
import { rpcOf } from "./rpc-error.ts";
import { HEADER_MISMATCH } from "../model/rpc.ts";
import { answerServer } from "./server-requests.ts";
import { useRequest } from "./use-request.ts";

/** Progress restarts a call's timeout, up to so many times the timeout in all. */
const CEILING_FACTOR = 10;

/** How long a call may take at most, however much progress it makes. */
export function longestCallMs({ toolTimeout }: ServerSpec): number {
  return toolTimeout * CEILING_FACTOR;
}

export interface CallSetting {
  readonly spec: ServerSpec;
  readonly deps: Pick<ConnectionDeps, "workspaceRoots" | "env">;
  readonly findTool: (name: string) => ToolDefinition | undefined;
  readonly readTools: () => Promise<void>;
}

export function runOn(link: Link, use: Use, given: UseContext, setting: CallSetting): Promise<JsonObject> {
  const context = { ...given, client: withOfferedRoots(given.client, setting.spec, setting.deps) };
  const { method, params: known } = useRequest(use);
  // What the hub knows of the request is never overwritten by what it does not know.
  const params: JsonObject = context.extra === undefined ? known : { ...context.extra, ...known };
  const { client, signal, input } = context;
  if (context.meta !== undefined) params["_meta"] = context.meta;
  const options = callOptions(use, context, setting.spec);
  if (link.agreement.era === "legacy") return link.peer.request(method, params, options);
  const modernOptions = { ...options, envelope: callerEnvelope(context) };
  const send = (extra: JsonObject): Promise<JsonObject> => {
    const headers = mirrorsParams(link) ? headersOf(use, setting) : undefined;
    return link.peer
      .request(method, { ...params, ...extra }, { ...modernOptions, ...(headers && { headers }) })
      .catch((error: unknown) => sendAgainWithFreshHeaders(error, extra));
  };
  if (input !== undefined) return send(broughtAlong(input, given.client, setting));
  return completeInput({
    send,
    answer: (asked, askedParams, askedSignal) =>
      answerServer(calledName(setting.spec), client, asked, askedParams, askedSignal),
    signal,
  });

  /** The server's idea of which parameters are headers may be newer than ours. */
  async function sendAgainWithFreshHeaders(error: unknown, extra: JsonObject): Promise<JsonObject> {
    if (use.kind !== "tool" || rpcOf(error)?.code !== HEADER_MISMATCH) throw error;
    await setting.readTools();
    const headers = headersOf(use, setting);
    return link.peer.request(method, { ...params, ...extra }, { ...modernOptions, ...(headers && { headers }) });
  }
}

/** A modern server learns with each request what the client behind it can do. */
function callerEnvelope({ client, logLevel }: UseContext): JsonObject {
  return {
    [CLIENT_CAPABILITIES_KEY]: modernCapabilities(client.capabilities),
    // A key without a value would take away the connection's own level.
    ...(logLevel === undefined ? {} : { [LOG_LEVEL_KEY]: logLevel }),
  };
}

function broughtAlong(
  { responses, state }: InputRound,
  client: ClientSide,
  { spec, deps }: Pick<CallSetting, "spec" | "deps">,
): JsonObject {
  return {
    ...(responses === undefined ? {} : { inputResponses: withOfferedAnswers(responses, client, spec, deps) }),
    ...(state === undefined ? {} : { requestState: state }),
  };
}

function callOptions(use: Use, context: UseContext, spec: ServerSpec): RequestOptions {
  const { callId, client, signal, onProgress, onNotice } = context;
  const progress = onProgress ?? (use.kind === "tool" ? ignoreProgress : undefined);
  return {
    callId,
    client,
    signal,
    timeoutMs: spec.toolTimeout,
    maxTotalMs: longestCallMs(spec),
    onProgress: progress,
    onNotice,
  };
}

/** Progress of a tool is always asked for: it restarts the timeout also where nobody watches it. */
function ignoreProgress(): void {}

function mirrorsParams(link: Link): boolean {
  return link.agreement.era === "modern" && link.wire.transport === "http";
}

function headersOf(use: Use, setting: CallSetting): Record<string, string> | undefined {
  const tool = use.kind === "tool" ? setting.findTool(use.name) : undefined;
  return use.kind === "tool" && tool !== undefined ? paramHeaders(tool, use.arguments) : undefined;
}
