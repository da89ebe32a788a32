/** A hub in another process or on another machine: finding it and sending requests to it. */
import { Readable } from "node:stream";
import { toolcribHome } from "../config/find-config.ts";
import { type HubRecord, readHubRecords } from "../hub/activity/hub-records.ts";
import { VERSION_HEADER } from "../model/bridge.ts";
import { ToolcribError, isErrorObject } from "../model/errors.ts";
import { isJsonObject, type JsonObject, parseJsonObject } from "../model/json.ts";
import { clientInfoOf, clientLabel } from "../model/client-info.ts";
import { isLoopback } from "../base/network-address.ts";
import { HttpClient, type HttpResponse } from "../upstream/http/http-client.ts";
import type { ResponseBody } from "../upstream/http/http-connection.ts";
import type { Invocation } from "./command.ts";
import { readBytes } from "../base/read-bytes.ts";

const TIMEOUT_MS = 30_000;
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

interface OpenResponse {
  readonly body: Readable;
  /** Of Toolcrib there. */
  readonly version: string | undefined;
}

export class RemoteHub {
  /** Without a slash at its end. */
  readonly url: string;
  readonly #token: string | undefined;

  constructor(url: string, token: string | undefined) {
    this.url = url;
    this.#token = token;
  }

  /** Rejects with the hub's own error, or with `server_unavailable` if there is no hub. */
  async request(method: "GET" | "POST" | "DELETE", path: string, body?: JsonObject): Promise<JsonObject> {
    const client = new HttpClient();
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    try {
      const { status, body: answer } = await this.#send(client, method, path, body, signal);
      const value = await jsonOf(streamOf(answer));
      if (status >= 200 && status < 300 && value !== undefined) return value;
      throw this.#refusal(status, value);
    } catch (error) {
      if (signal.aborted) throw new ToolcribError("timeout", `${this.url} did not respond within ${TIMEOUT_MS} ms.`);
      throw error;
    } finally {
      client.destroy();
    }
  }

  /** The body of a response that may take for ever. Rejects as `request` does. */
  async open(method: "POST", path: string, body: JsonObject): Promise<OpenResponse> {
    const client = new HttpClient();
    try {
      const response = await this.#send(client, method, path, body);
      const stream = streamOf(response.body);
      if (response.status !== 200) throw this.#refusal(response.status, await jsonOf(stream));
      stream.once("close", () => client.destroy());
      return { body: stream, version: response.headers[VERSION_HEADER] };
    } catch (error) {
      client.destroy();
      throw error;
    }
  }

  #send(
    client: HttpClient,
    method: "GET" | "POST" | "DELETE",
    path: string,
    body?: JsonObject,
    signal?: AbortSignal,
  ): Promise<HttpResponse> {
    return client.request({
      method,
      url: new URL(this.url + path),
      headers: {
        accept: "application/json",
        ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: body && JSON.stringify(body),
      signal,
    });
  }

  #refusal(status: number, value: JsonObject | undefined): ToolcribError {
    const error = value?.["error"];
    if (!isErrorObject(error)) return this.#noHub(status);
    const hint = error.code === "unauthorized" ? "Give it with --token or TOOLCRIB_TOKEN." : error.hint;
    return new ToolcribError(error.code, error.message, { hint });
  }

  #noHub(status: number): ToolcribError {
    const message = `The server at ${this.url} is not a Toolcrib hub (HTTP ${status}).`;
    return new ToolcribError("server_unavailable", message, { hint: "Check --hub." });
  }
}

function streamOf(body: ResponseBody): Readable {
  const stream = new Readable({
    read: () => body.resume(),
    destroy: (error, done) => {
      body.destroy();
      done(error);
    },
  });
  body.read({
    onData: (chunk) => {
      if (!stream.push(Buffer.from(chunk))) body.pause();
    },
    onEnd: () => stream.push(null),
    onCut: (error) => stream.destroy(error),
  });
  return stream;
}

async function jsonOf(body: Readable): Promise<JsonObject | undefined> {
  const tooLarge = (): Error =>
    new ToolcribError("too_large", `The hub's response is larger than ${MAX_RESPONSE_BYTES} bytes.`);
  const bytes = await readBytes(body, MAX_RESPONSE_BYTES, tooLarge);
  return bytes.length === 0 ? {} : parseJsonObject(bytes.toString("utf8"));
}

/** A session that an editor has open in `toolcrib acp`. */
export interface EditorSession {
  /** The id that the editor has for it. */
  readonly id: string;
  readonly client: string | undefined;
  readonly folder: string | undefined;
  readonly openedAt: string | undefined;
  readonly hub: HubRecord;
}

/** Those of all editors of this user. A process that does not answer has none. */
export async function editorSessions(home: string): Promise<EditorSession[]> {
  const editors = readHubRecords(home).filter(({ editor }) => editor === true);
  const found = await Promise.all(
    editors.map(async (hub) => {
      const path = "/api/v1/sessions?door=acp&limit=200";
      const { sessions } = await new RemoteHub(hub.url, hub.token).request("GET", path).catch((): JsonObject => ({}));
      // Those of other processes on the same store have no conversation here.
      return (Array.isArray(sessions) ? sessions : []).flatMap((session: unknown) => editorSession(session, hub) ?? []);
    }),
  );
  return found.flat();
}

function editorSession(session: unknown, hub: HubRecord): EditorSession | undefined {
  if (!isJsonObject(session) || typeof session["conversation"] !== "string") return undefined;
  const client = clientInfoOf(session["client"]);
  const folder = isJsonObject(session["client"]) ? session["client"]["cwd"] : undefined;
  const { openedAt } = session;
  return {
    id: session["conversation"],
    client: client && clientLabel(client),
    folder: typeof folder === "string" ? folder : undefined,
    openedAt: typeof openedAt === "string" ? openedAt : undefined,
    hub,
  };
}

/** The session of `--session`, by the beginning of its id. Rejects with `not_found`. */
export async function namedEditorSession(home: string, wanted: string): Promise<EditorSession> {
  const open = await editorSessions(home);
  const [found, another] = open.filter(({ id }) => id.startsWith(wanted));
  if (found !== undefined && (another === undefined || found.id === wanted)) return found;
  const many = another !== undefined;
  throw new ToolcribError(
    "not_found",
    `${many ? "Several sessions" : "No session"} of an editor ${many ? "have ids that begin" : "has an id that begins"} with ${wanted}.`,
    {
      hint:
        open.length === 0
          ? "No editor has a session open with toolcrib acp in this home, or it was started with --standalone."
          : `Open: ${open.map(({ id }) => id).join(", ")}.`,
    },
  );
}

/** The hub of `--hub`; `own` if it is one that this user runs. */
export function namedHub(
  home: string,
  wanted: string,
  token: string | undefined,
): { readonly own: HubRecord | undefined; readonly hub: RemoteHub } {
  const running = readHubRecords(home);
  const known = addressOf(running, wanted);
  const own = running.find(({ token: each }) => each === known?.token);
  return { own, hub: new RemoteHub(checkedUrl(wanted, token !== undefined), token) };
}

interface FindOptions {
  /** Whether the token in the hub's own file may be used. */
  readonly withOwnToken?: boolean;
}

/**
 * The hub of `--hub`, or the one hub that this user runs. A token from the hub's own file is sent only to the address in that
 * file: another program that listens under a different name of this machine must not get it.
 */
export async function findRunningHub(
  { flags, env, out }: Invocation,
  { withOwnToken = true }: FindOptions = {},
): Promise<RemoteHub> {
  const running = readHubRecords(toolcribHome(env));
  const wanted = flags.text("hub");
  const known = wanted === undefined ? ownAddress(onlyHub(running)) : addressOf(running, wanted);
  const token = flags.text("token") ?? (withOwnToken ? known?.token : undefined) ?? tokenOf(env);
  if (token !== undefined) out.redactor.addCredential(token);
  return new RemoteHub(checkedUrl(known?.url ?? wanted ?? "", token !== undefined), token);
}

export function tokenOf(env: NodeJS.ProcessEnv): string | undefined {
  return env["TOOLCRIB_TOKEN"] || undefined;
}

function onlyHub(all: readonly HubRecord[]): HubRecord {
  const shared = all.filter(({ editor }) => editor !== true);
  // An editor's agent is meant if there is nothing else.
  const running = shared.length === 0 ? all : shared;
  const [first, another] = running;
  if (first === undefined) {
    throw new ToolcribError("server_unavailable", "This user runs no hub.", {
      hint: "Start one with toolcrib serve, or name one with --hub <url>.",
    });
  }
  if (another === undefined) return first;
  throw new ToolcribError("invalid_arguments", `This user runs ${running.length} hubs.`, {
    hint: `Choose one: ${running.map(({ url }) => `--hub ${url}`).join(", ")}`,
  });
}

type Address = Pick<HubRecord, "url" | "token">;

function ownAddress({ url, token }: HubRecord): Address {
  return { url, token };
}

/** The running hub at an address of its own file. An exact match comes first. */
function addressOf(running: readonly HubRecord[], wanted: string): Address | undefined {
  const exactly = running.find(({ url }) => isSameAddress(url, wanted));
  if (exactly !== undefined) return ownAddress(exactly);
  const outside = running.find(({ publicUrl }) => publicUrl !== undefined && isSameAddress(publicUrl, wanted));
  if (outside?.publicUrl !== undefined) return { url: outside.publicUrl, token: outside.token };
  const canonical = (hostname: string): string => (LOOPBACK_NAMES.has(hostname) ? "localhost" : hostname);
  const byName = running.find(({ url }) => isSameAddress(url, wanted, canonical));
  return byName && ownAddress(byName);
}

/** People type any of these for this machine. Other loopback addresses are distinct. */
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

function isSameAddress(known: string, wanted: string, nameOf = (hostname: string): string => hostname): boolean {
  const [a, b] = [URL.parse(known), URL.parse(wanted)];
  if (a === null || b === null || a.protocol !== b.protocol || a.port !== b.port) return false;
  if (a.pathname.replace(/\/$/, "") !== b.pathname.replace(/\/$/, "")) return false;
  return nameOf(a.hostname) === nameOf(b.hostname);
}

/** Without a slash at its end. Throws for plain HTTP to another machine if there is a token to send. */
export function checkedUrl(address: string, hasToken: boolean): string {
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new ToolcribError("invalid_arguments", "--hub must be a URL such as http://127.0.0.1:4700.");
  }
  if (hasToken && url.protocol === "http:" && !isLoopback(url.hostname)) {
    throw new ToolcribError("invalid_arguments", `The token is not sent to ${url.host} over plain HTTP.`, {
      hint: "Use https, or run the command on the hub's machine.",
    });
  }
  return url.origin + url.pathname.replace(/\/$/, "");
}
