/** What a legacy client posts: it opens a session, or belongs to one. */
import type { Caller } from "../../../model/caller.ts";
import { asToolcribError } from "../../../model/errors.ts";
import { INVALID_REQUEST, type RequestId, type RpcRequest } from "../../../model/rpc.ts";
import type { QuotaReached } from "../../../policy/quota.ts";
import { errorCodeOf } from "../encode.ts";
import type { Encoded } from "../encoded.ts";
import { batchError, type ClientMessage } from "../messages.ts";
import type { ViewScope } from "../origin.ts";
import type { Accepts } from "./accepts.ts";
import { answerOf } from "./answer-of.ts";
import { isElsewhere } from "./elsewhere.ts";
import { answerNothing, type McpExchange, refuse, refuseToolcrib } from "./exchange.ts";
import { SESSION_HEADER, sessionFor } from "./find-session.ts";
import { headerOf } from "./header-value.ts";
import { HttpSession } from "./http-session.ts";
import { LegacyReply } from "./legacy-reply.ts";
import { mayAsk } from "./may-ask.ts";
import type { Transport } from "./transport.ts";

export async function postLegacy(
  transport: Transport,
  exchange: McpExchange,
  accepts: Accepts,
  scope: ViewScope,
  posted: Exclude<ClientMessage, { kind: "invalid" }>,
): Promise<void> {
  const { request, response } = exchange;
  if (posted.kind === "request" && posted.message.method === "initialize" && !(SESSION_HEADER in request.headers)) {
    return initialize(transport, exchange, accepts, scope, posted.message);
  }
  const id = posted.kind === "request" ? posted.message.id : null;
  if (transport.ids !== undefined && (await isOthers(transport, exchange, id))) return;
  const session = sessionFor(transport, exchange, scope, id);
  if (session === undefined) return;
  if (posted.kind === "request") {
    if (!mayAsk(transport, exchange, [posted.message], { ofSession: true })) return;
    const { message } = posted;
    const { streams } = transport;
    const reply = new LegacyReply({ response, session, accepts, streams, ids: [message.id], isBatch: false });
    const answer = await answerOf(message.id, () => session.legacy.request(message, reply));
    reply.finish(answer === null ? [] : [answer]);
    return;
  }
  if (posted.kind === "notification") session.legacy.notify(posted.message);
  else session.legacy.answer(posted.message);
  answerNothing(response, 202);
}

async function initialize(
  transport: Transport,
  exchange: McpExchange,
  accepts: Accepts,
  scope: ViewScope,
  message: RpcRequest,
): Promise<void> {
  const { response, caller } = exchange;
  if (!mayAsk(transport, exchange, [message])) return;
  let opened: ReturnType<typeof openSession>;
  try {
    opened = openSession(transport, caller, scope);
  } catch (error) {
    refuseToolcrib(response, message.id, asToolcribError(error).toObject());
    return;
  }
  if ("reached" in opened) {
    transport.refuseFull(response, message.id, "sessions", opened.reached);
    return;
  }
  const { session } = opened;
  const { legacy } = session;
  const { streams } = transport;
  const reply = new LegacyReply({ response, session, accepts, streams, ids: [message.id], isBatch: false });
  reply.headers = { "Mcp-Session-Id": session.id };
  const answer = await answerOf(message.id, () => legacy.request(message, reply));
  const isOpen = answer !== null && errorCodeOf(answer) === undefined && !response.destroyed;
  if (!isOpen) reply.headers = undefined;
  reply.finish(answer === null ? [] : [answer]);
  if (!isOpen) transport.sessions.end(session);
}

function openSession(
  transport: Transport,
  caller: Caller,
  scope: ViewScope,
): { readonly session: HttpSession } | { readonly reached: QuotaReached } {
  const { sessions, clock, resumeGraceMs, door, ids } = transport;
  return sessions.open(
    caller,
    (id) =>
      new HttpSession({
        id,
        caller,
        scope,
        clock,
        graceMs: resumeGraceMs,
        open: (stream) => door.openSession({ caller, scope }, stream),
      }),
    ids?.issue("mcp"),
  );
}

async function isOthers({ ids }: Transport, exchange: McpExchange, id: RequestId | null): Promise<boolean> {
  return isElsewhere(ids, exchange, "mcp", headerOf(exchange.request.headers[SESSION_HEADER]), id);
}

/** @param batch What was in the array, told apart. */
export async function postBatch(
  transport: Transport,
  exchange: McpExchange,
  accepts: Accepts,
  scope: ViewScope,
  batch: readonly ClientMessage[],
): Promise<void> {
  const { response } = exchange;
  if (transport.ids !== undefined && (await isOthers(transport, exchange, null))) return;
  const session = sessionFor(transport, exchange, scope, null);
  if (session === undefined) return;
  const reason = batchError(batch, session.legacy.version);
  if (reason !== undefined) {
    refuse(response, 400, null, { code: INVALID_REQUEST, message: reason });
    return;
  }
  const requests = batch.flatMap((posted) => (posted.kind === "request" ? [posted.message] : []));
  if (!mayAsk(transport, exchange, requests, { ofSession: true })) return;
  for (const posted of batch) {
    if (posted.kind === "notification") session.legacy.notify(posted.message);
    if (posted.kind === "response") session.legacy.answer(posted.message);
  }
  if (requests.length === 0) {
    answerNothing(response, 202);
    return;
  }
  await answerBatch(transport, exchange, accepts, session, requests);
}

async function answerBatch(
  transport: Transport,
  { response }: McpExchange,
  accepts: Accepts,
  session: HttpSession,
  requests: readonly RpcRequest[],
): Promise<void> {
  const ids = requests.map(({ id }) => id);
  const { streams } = transport;
  const reply = new LegacyReply({ response, session, accepts, streams, ids, isBatch: true });
  const waiting: Encoded[] = [];
  await Promise.all(
    requests.map(async (request) => {
      const answer = await answerOf(request.id, () => session.legacy.request(request, reply));
      if (answer === null) return;
      if (reply.isStream) reply.send(answer);
      else waiting.push(answer);
    }),
  );
  reply.finish(waiting);
}
