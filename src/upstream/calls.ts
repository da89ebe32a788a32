/** Runs one Use on one Link: params, headers, timeouts, and the rounds in which a modern server asks back. */
import type { JsonObject } from "../model/json.ts";
import type { ToolDefinition } from "../model/protocol.ts";
import type { ServerSpec } from "../model/server-spec.ts";
import type { Use, UseContext } from "../model/source.ts";
import { completeInput } from "./input-rounds.ts";
import type { Link } from "./link.ts";
import { paramHeaders } from "./param-headers.ts";
import type { RequestOptions } from "./peer.ts";
import { HEADER_MISMATCH, rpcOf } from "./rpc-error.ts";
import { answerServer } from "./server-requests.ts";
import { useRequest } from "./use-request.ts";

/** Progress restarts a call's timeout, up to so many times the timeout in all. */
const CEILING_FACTOR = 10;

export interface CallSetting {
  readonly spec: ServerSpec;
  readonly findTool: (name: string) => ToolDefinition | undefined;
  readonly readTools: () => Promise<void>;
}

export async function runOn(link: Link, use: Use, context: UseContext, setting: CallSetting): Promise<JsonObject> {
  const { method, params } = useRequest(use);
  const { session, signal } = context;
  const meta = context.meta === undefined ? {} : { _meta: context.meta };
  const options = callOptions(use, context, setting.spec);
  const send = (extra: JsonObject): Promise<JsonObject> => {
    const headers = mirrorsParams(link) ? headersOf(use, setting) : undefined;
    return link.peer.request(method, { ...params, ...extra, ...meta }, { ...options, ...(headers && { headers }) });
  };
  if (link.agreement.era === "legacy") return send({});
  return completeInput({
    send: (extra) => send(extra).catch((error: unknown) => sendAgainWithFreshHeaders(error, extra)),
    answer: (asked, askedParams, askedSignal) =>
      answerServer(setting.spec.id, session, asked, askedParams, askedSignal),
    signal,
  });

  /** The server's idea of which parameters are headers may be newer than ours. */
  async function sendAgainWithFreshHeaders(error: unknown, extra: JsonObject): Promise<JsonObject> {
    if (use.kind !== "tool" || rpcOf(error)?.code !== HEADER_MISMATCH) throw error;
    await setting.readTools();
    return send(extra);
  }
}

function callOptions(use: Use, context: UseContext, spec: ServerSpec): RequestOptions {
  const { session, signal, onProgress } = context;
  const progress = onProgress ?? (use.kind === "tool" ? ignoreProgress : undefined);
  return {
    session,
    signal,
    timeoutMs: spec.toolTimeout,
    maxTotalMs: spec.toolTimeout * CEILING_FACTOR,
    ...(progress === undefined ? {} : { onProgress: progress }),
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
