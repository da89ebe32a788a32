/** The messages between the node of a caller and the node that runs the server. */
import { decodeError, encodeError, type IncomingCall } from "../../cluster/cluster.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Era } from "../../model/protocol.ts";
import type { ServerInfo, ServerState } from "../../model/server-state.ts";
import type { ClientSide, Definitions, InputRound, SessionContext, Use, UseContext } from "../../model/source.ts";
import { answerServer } from "../server-requests.ts";

/** Nodes of one cluster are of one making: what they send each other is taken as it comes. */
export function readBody<T>(body: Uint8Array | undefined): T {
  // The node at the other end wrote it with `writeBody` from the same type.
  return JSON.parse(Buffer.from(body ?? []).toString("utf8") || "null") as T;
}

export function writeBody(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value ?? null), "utf8");
}

/** A server, described by the node that runs it. */
export interface ReplicaDescription {
  readonly state: ServerState;
  readonly info: ServerInfo;
  readonly definitions: Definitions;
  readonly instructions: string | null;
  /** Of the users that were asked for, where each has a connection. */
  readonly userInstructions: Readonly<Record<string, string>>;
  readonly offersSkills: boolean;
}

export interface ForwardedSession {
  readonly id: string;
  readonly door: string;
  readonly role?: string;
  readonly user?: string;
  readonly owner: boolean;
  readonly workspaceDir?: string;
  /** The own session of the hub that sends it. */
  readonly isHub: boolean;
}

export function forwardedSession(session: SessionContext, hubSession: SessionContext): ForwardedSession {
  const { id, door, role, user, owner, workspaceDir } = session;
  return { id, door, owner, isHub: id === hubSession.id, role, user, workspaceDir };
}

interface ForwardedClient {
  /** Of the client, on its node. */
  readonly key: string;
  readonly capabilities: Readonly<JsonObject>;
  readonly rootsOnRequest?: boolean;
  readonly answers: { readonly roots: boolean; readonly sampling: boolean; readonly elicitation: boolean };
}

export interface ForwardedUse {
  readonly use: Use;
  readonly callId: string;
  readonly session: ForwardedSession;
  readonly client: ForwardedClient;
  readonly meta?: JsonObject;
  readonly extra?: JsonObject;
  readonly logLevel?: string;
  readonly tasks?: Era | "none";
  readonly input?: InputRound;
  readonly wantsProgress: boolean;
  readonly wantsNotices: boolean;
}

const keys = new WeakMap<object, string>();
let lastKey = 0;

/** Keys are compared, never read: an object gets a token of its own. */
export function clientKey(key: unknown): string {
  if (typeof key !== "object" || key === null) return `=${String(key)}`;
  let token = keys.get(key);
  if (token === undefined) keys.set(key, (token = String(++lastKey)));
  return token;
}

export function forwardedClient(client: ClientSide): ForwardedClient {
  const { key, capabilities, rootsOnRequest = false, listRoots, sample, elicit } = client;
  const answers = { roots: listRoots !== undefined, sampling: sample !== undefined, elicitation: elicit !== undefined };
  return { key: clientKey(key), capabilities, rootsOnRequest, answers };
}

export function forwardedUse(use: Use, context: UseContext, hubSession: SessionContext): ForwardedUse {
  const { callId, meta, extra, logLevel, tasks, input } = context;
  return {
    ...{ use, callId, meta, extra, logLevel, tasks, input },
    session: forwardedSession(context.session, hubSession),
    client: forwardedClient(context.client),
    wantsProgress: context.onProgress !== undefined,
    wantsNotices: context.onNotice !== undefined,
  };
}

/** A replica did not take a call, so that it may be given to another one: nothing was begun. */
export class CallNotStarted extends ToolcribError {
  /** The replica said so itself: it is there, and another one follows. */
  get isMoving(): boolean {
    return this.details?.["moving"] === true;
  }
}

/** The server is leaving the replica that was called. */
export function serverMoving(id: string): CallNotStarted {
  return new CallNotStarted("server_unavailable", `Server ${JSON.stringify(id)} is moving to another node.`, {
    hint: "Try again shortly.",
    details: { server: id, sent: false, moving: true },
  });
}

/** The error of a call to another node, as a CallNotStarted if nothing was begun. */
export function asCallNotStarted(thrown: unknown): unknown {
  if (!(thrown instanceof ToolcribError) || thrown.details?.["sent"] !== false) return thrown;
  const { code, message, hint, details } = thrown;
  return code === "server_unavailable" ? new CallNotStarted(code, message, { hint, details, cause: thrown }) : thrown;
}

/** The client behind a forwarded call, at the node that runs the server: it sits at another node and answers from there. */
export function remoteClient(sent: ForwardedClient, call: Pick<IncomingCall, "ask" | "from">): ClientSide {
  let open = 0;
  const ask =
    (method: string) =>
    async (params: JsonObject, signal: AbortSignal): Promise<JsonObject> => {
      open++;
      try {
        const answer = await call.ask({ method, params }, signal);
        if (isJsonObject(answer["error"])) throw decodeError(answer["error"]);
        return isJsonObject(answer["result"]) ? answer["result"] : {};
      } finally {
        open--;
      }
    };
  const roots = ask("roots/list");
  const sample = ask("sampling/createMessage");
  const elicit = ask("elicitation/create");
  const { answers } = sent;
  return {
    key: `${call.from}/${sent.key}`,
    // The client's own value is not sent: an open question is the usual reason.
    isWaiting: () => open > 0,
    capabilities: sent.capabilities,
    // One that does not say is of a node that knows nothing of it.
    rootsOnRequest: sent.rootsOnRequest ?? true,
    listRoots: answers.roots ? ({ signal }) => roots({}, signal) : undefined,
    sample: answers.sampling ? (params, { signal }) => sample(params, signal) : undefined,
    elicit: answers.elicitation ? (params, { signal }) => elicit(params, signal) : undefined,
  };
}

/** At the node of the caller. */
export async function answerForwarded(
  server: string,
  client: ClientSide,
  { method, params }: JsonObject,
  signal: AbortSignal,
): Promise<JsonObject> {
  try {
    return { result: await answerServer(server, client, String(method), isJsonObject(params) ? params : {}, signal) };
  } catch (error) {
    return { error: encodeError(error) };
  }
}
