/** A typed client of a running hub, for browsers and Node. */
import type { InputOf, OperationName, OutputOf } from "../contract/operations.ts";
import { API_PATH } from "../contract/rest.ts";
import { errorFromResponse, cancelledError, isObject, ToolcribApiError, unreachableError } from "./api-error.ts";
import { LiveConnection, type LiveOptions } from "./live-connection.ts";
import {
  type CallOptions,
  type ItemOf,
  type ListName,
  OperationCaller,
  queryOf,
  type RestRequest,
  restRequest,
} from "./rest-operations.ts";
import { CLIENT_HEADER, CLIENT_PARAM } from "../contract/rest.ts";
import { type Socket, socketAddress, type SocketMaker, socketProtocols } from "./hub-socket.ts";

export interface FetchInit {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly signal?: AbortSignal;
  readonly credentials?: "same-origin";
}

const REFUSAL_TIMEOUT_MS = 5000;

interface Answer {
  readonly ok: boolean;
  readonly status: number;
  text(): Promise<string>;
  /** Without it a download is created from the text. */
  blob?(): Promise<Blob>;
}

/** The part of `fetch` that is used. */
export type Fetch = (address: string, init: FetchInit) => Promise<Answer>;

type AuditFilters = Omit<InputOf<"listAudit">, "limit" | "cursor">;

export interface ToolcribClientOptions {
  /** Address of the hub, such as `http://127.0.0.1:4700`. */
  readonly url: string;
  /** Without a token the page's cookie is sent, if any. */
  readonly token?: string;
  /** How the program names itself to the hub, as `name/version`. */
  readonly name?: string;
  /** The key that `login` returned. The cookie is valid only with it. */
  readonly pageKey?: string | (() => string | undefined);
  readonly fetch?: Fetch;
  readonly WebSocket?: SocketMaker;
}

export interface ApprovalLink {
  readonly approval: OutputOf<"getApproval">["approval"];
  readonly answer: "once" | "no";
  /** The name of the notice in the config. */
  readonly notice: string;
}

/**
 * ```ts
 * const client = new ToolcribClient({ url: "http://127.0.0.1:4700", token });
 * const { servers } = await client.listServers({ state: "failed" });
 * for await (const tool of client.all("listTools")) console.log(tool.name);
 * ```
 */
export class ToolcribClient extends OperationCaller {
  readonly #options: ToolcribClientOptions;
  readonly #url: string;

  constructor(options: ToolcribClientOptions) {
    super();
    this.#options = options;
    this.#url = options.url.replace(/\/+$/, "");
  }

  /** Rejects with ToolcribApiError. */
  override async call<Name extends OperationName>(
    name: Name,
    input: InputOf<Name>,
    options: CallOptions = {},
  ): Promise<OutputOf<Name>> {
    // The hub responds with the output of the operation.
    return (await this.#send(restRequest(name, input), options)) as OutputOf<Name>;
  }

  /** Every entry of a list. Pages are fetched as needed. */
  async *all<Name extends ListName>(
    name: Name,
    input?: InputOf<Name>,
    options: CallOptions = {},
  ): AsyncGenerator<ItemOf<Name>> {
    let cursor: string | undefined;
    do {
      // `cursor` is an input of every list.
      const given = { ...input, ...(cursor === undefined ? {} : { cursor }) } as InputOf<Name>;
      const page: object = await this.call(name, given, options);
      // The one list in the answer holds what the operation lists.
      yield* (Object.values(page).find(Array.isArray) ?? []) as ItemOf<Name>[];
      cursor = "nextCursor" in page && typeof page.nextCursor === "string" ? page.nextCursor : undefined;
    } while (cursor !== undefined);
  }

  /** Events and commands over one WebSocket that reconnects by itself. */
  live(options: LiveOptions = {}): LiveConnection {
    const { token, WebSocket: given } = this.#options;
    const maker = given ?? builtInSocket();
    socketProtocols(token, undefined);
    const open = (query: string): Socket =>
      new maker(socketAddress(this.#url, this.#withName(query)), socketProtocols(token, this.#pageKey()));
    return new LiveConnection({ open, refusal: () => this.#refusal(), refusedForGood: token !== undefined }, options);
  }

  async #refusal(): Promise<ToolcribApiError | undefined> {
    try {
      await this.call("me", {}, { signal: AbortSignal.timeout(REFUSAL_TIMEOUT_MS) });
      return undefined;
    } catch (error) {
      const isRefusal = error instanceof ToolcribApiError && (error.status === 401 || error.status === 403);
      return isRefusal ? error : undefined;
    }
  }

  /** The download URL of the audit log, with the filters of `listAudit`. */
  auditExportAddress(filters: AuditFilters = {}): string {
    return this.#url + auditExportPath(filters);
  }

  /** The audit log as JSON lines, with the filters of `listAudit`. */
  async exportAudit(filters: AuditFilters = {}, options: CallOptions = {}): Promise<Blob> {
    const request: RestRequest = { method: "GET", path: auditExportPath(filters), headers: {} };
    return this.#ask(request, options, async (answer) => {
      if (!answer.ok) throw errorFromResponse(answer.status, parsed(await answer.text()));
      return answer.blob?.() ?? new Blob([await answer.text()], { type: "application/x-ndjson" });
    });
  }

  /** Exchanges the code of a login link, or a token, for the page's cookie and its key. */
  async login(given: { readonly code: string } | { readonly token: string }): Promise<{ readonly pageKey: string }> {
    // The response to a login has it.
    return (await this.#post("/login", given)) as { readonly pageKey: string };
  }

  async logout(): Promise<void> {
    await this.#post("/logout", {});
  }

  /** The call that a link of a notice is about. The token is what the link has after its `#`; no other credentials are needed. */
  async readApprovalLink(token: string): Promise<ApprovalLink> {
    // The hub's own response.
    return (await this.#post("/approval-links", { token })) as ApprovalLink;
  }

  /** Gives the answer that the link stands for. It works once. */
  async answerByLink(token: string): Promise<{ readonly id: string; readonly answer: ApprovalLink["answer"] }> {
    return (await this.#post("/approval-links/answer", { token })) as { id: string; answer: ApprovalLink["answer"] };
  }

  #post(path: string, body: object): Promise<unknown> {
    const headers = { "content-type": "application/json" };
    return this.#send({ method: "POST", path: API_PATH + path, headers, body: JSON.stringify(body) }, {});
  }

  #send(request: RestRequest, options: CallOptions): Promise<unknown> {
    return this.#ask(request, options, async (answer) => {
      const { status } = answer;
      const text = await answer.text();
      const value = parsed(text);
      if (status >= 200 && status < 300 && (isObject(value) || text === "")) return value ?? {};
      throw errorFromResponse(status, value);
    });
  }

  async #ask<Read>(
    { method, path, headers, body }: RestRequest,
    { signal }: CallOptions,
    read: (answer: Answer) => Promise<Read>,
  ): Promise<Read> {
    const { fetch: given = builtInFetch } = this.#options;
    const init: FetchInit = {
      method,
      headers: { ...headers, [CLIENT_HEADER]: this.#name, ...this.#credentials(method) },
      credentials: "same-origin",
      body,
      signal,
    };
    try {
      return await read(await given(this.#url + path, init));
    } catch (error) {
      if (error instanceof ToolcribApiError) throw error;
      throw signal?.aborted === true ? cancelledError(error) : unreachableError(error);
    }
  }

  #withName(query: string): string {
    return `${query}${query === "" ? "?" : "&"}${CLIENT_PARAM}=${encodeURIComponent(this.#name)}`;
  }

  get #name(): string {
    return this.#options.name ?? "toolcrib-client";
  }

  /** A page of another site cannot send this header without a CORS preflight, and does not know the key. */
  #credentials(method: string): Record<string, string> {
    const { token } = this.#options;
    if (token !== undefined) return { authorization: `Bearer ${token}` };
    const key = this.#pageKey() ?? (method === "GET" ? undefined : "page");
    return key === undefined ? {} : { "x-toolcrib": key };
  }

  #pageKey(): string | undefined {
    const { pageKey } = this.#options;
    return typeof pageKey === "function" ? pageKey() : pageKey;
  }
}

function auditExportPath(filters: AuditFilters): string {
  return `${API_PATH}/audit/export${queryOf(Object.entries(filters))}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Browsers require it to be called on the global object. */
const builtInFetch: Fetch = (address, init) => globalThis.fetch(address, init);

function builtInSocket(): SocketMaker {
  if (typeof globalThis.WebSocket === "function") return globalThis.WebSocket;
  throw new TypeError("This environment has no WebSocket. Pass one: new ToolcribClient({url, WebSocket}).");
}
