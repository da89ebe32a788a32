/** What travels between the node of a caller and the node that runs the server. */
import { asToolcribError, ERROR_TABLE, type ErrorCode, ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ServerInfo, ServerState } from "../../model/server-state.ts";
import type { ClientSide, SessionContext } from "../../model/session.ts";
import type { Definitions, InputRound, Use, UseContext } from "../../model/source.ts";

/** Nodes of one cluster are of one making: what they send each other is taken as it comes. */
export function readBody<T>(body: Uint8Array | undefined): T {
  // The node at the other end wrote it with `writeBody` from the same type.
  return JSON.parse(Buffer.from(body ?? []).toString("utf8") || "null") as T;
}

export function writeBody(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value ?? null), "utf8");
}

/** What the node that runs a server tells of it. */
export interface Description {
  readonly state: ServerState;
  readonly info: ServerInfo;
  readonly definitions: Definitions;
  readonly instructions: string | null;
  /** Of the users that were asked for, where each has a connection. */
  readonly userInstructions: Readonly<Record<string, string>>;
  readonly offersSkills: boolean;
}

export interface SentSession {
  readonly id: string;
  readonly door: string;
  readonly role?: string;
  readonly user?: string;
  readonly owner: boolean;
  readonly workspaceDir?: string;
  /** The own session of the hub that sends it. */
  readonly isHub: boolean;
}

export function sentSession(session: SessionContext, hubSession: SessionContext): SentSession {
  const { id, door, role, user, owner, workspaceDir } = session;
  return {
    id,
    door,
    owner,
    isHub: id === hubSession.id,
    role,
    user,
    workspaceDir,
  };
}

export interface SentClient {
  /** Of the client, on its node. */
  readonly key: string;
  readonly capabilities: Readonly<JsonObject>;
  readonly rootsOnRequest?: boolean;
  readonly answers: { readonly roots: boolean; readonly sampling: boolean; readonly elicitation: boolean };
}

export interface SentUse {
  readonly use: Use;
  readonly callId: string;
  readonly session: SentSession;
  readonly client: SentClient;
  readonly meta?: JsonObject;
  readonly extra?: JsonObject;
  readonly logLevel?: string;
  readonly input?: InputRound;
  readonly wantsProgress: boolean;
  readonly wantsNotices: boolean;
}

const keys = new WeakMap<object, string>();
let lastKey = 0;

/** Keys are compared, never read: an object gets a word of its own. */
export function keyWord(key: unknown): string {
  if (typeof key !== "object" || key === null) return `=${String(key)}`;
  const known = keys.get(key);
  if (known !== undefined) return known;
  const word = String(++lastKey);
  keys.set(key, word);
  return word;
}

export function sentClient({
  key,
  capabilities,
  rootsOnRequest = false,
  listRoots,
  sample,
  elicit,
}: ClientSide): SentClient {
  const answers = {
    roots: listRoots !== undefined,
    sampling: sample !== undefined,
    elicitation: elicit !== undefined,
  };
  return { key: keyWord(key), capabilities, rootsOnRequest, answers };
}

export function sentUse(use: Use, context: UseContext, hubSession: SessionContext): SentUse {
  const { meta, extra, logLevel, input } = context;
  return {
    use,
    callId: context.callId,
    session: sentSession(context.session, hubSession),
    client: sentClient(context.client),
    wantsProgress: context.onProgress !== undefined,
    wantsNotices: context.onNotice !== undefined,
    meta,
    extra,
    logLevel,
    input,
  };
}

/** An error of the server itself: it arrives as an answer, so that errors of the way there can be told apart. */
export function sentError(thrown: unknown): JsonObject {
  return JSON.parse(JSON.stringify(asToolcribError(thrown).toObject()));
}

export function readError(sent: JsonObject): ToolcribError {
  const { code, message, hint, details } = sent;
  return new ToolcribError(isErrorCode(code) ? code : "internal", String(message), {
    hint: typeof hint === "string" ? hint : undefined,
    details: isJsonObject(details) ? details : undefined,
  });
}

function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(ERROR_TABLE, code);
}
