/** A client that keeps every message exactly as it came: nothing is validated, nothing dropped. */
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import type { Era } from "../../src/model/protocol.ts";
import type { Channel } from "./channels.ts";

export interface Said {
  readonly method: string;
  readonly params: JsonObject | undefined;
}

export interface Answer {
  readonly result?: JsonObject;
  readonly error?: JsonObject;
}

/** The result, or a failure that shows the error. */
export function resultOf({ result, error }: Answer): JsonObject {
  if (result === undefined) throw new Error(`an error instead of a result: ${JSON.stringify(error)}`);
  return result;
}

/** A list in the result. */
export function listIn(answer: Answer, key: string): JsonObject[] {
  const list = resultOf(answer)[key];
  if (!Array.isArray(list)) throw new Error(`${key} is no list: ${JSON.stringify(list)}`);
  return list as JsonObject[];
}

export interface ClientOptions {
  readonly capabilities?: JsonObject;
  /** Answers what the server asks; what it throws is the error. */
  readonly serve?: (method: string, params: JsonObject | undefined) => JsonObject | Promise<JsonObject>;
  readonly version?: string;
}

const PREFIX = "io.modelcontextprotocol/";

export class RawClient {
  readonly era: Era;
  readonly channel: Channel;
  /** All notifications, in order. */
  readonly notices: Said[] = [];
  /** All requests of the server, in order. */
  readonly asked: Said[] = [];
  readonly #options: ClientOptions;
  readonly #waiting = new Map<unknown, (answer: Answer) => void>();
  #nextId = 1;

  constructor(channel: Channel, era: Era, options: ClientOptions = {}) {
    this.channel = channel;
    this.era = era;
    this.#options = options;
    channel.receive = (message) => this.#receive(message);
  }

  /** Ready for requests. */
  static async open(channel: Channel, era: Era, options: ClientOptions = {}): Promise<RawClient> {
    const client = new RawClient(channel, era, options);
    if (era === "legacy") await client.initialize();
    return client;
  }

  async initialize(): Promise<JsonObject> {
    const { capabilities = {}, version = "2025-11-25" } = this.#options;
    const clientInfo = { name: "raw", version: "1" };
    const { result = {} } = await this.request("initialize", { protocolVersion: version, capabilities, clientInfo });
    await this.channel.post({ jsonrpc: "2.0", method: "notifications/initialized" });
    return result;
  }

  start(method: string, params: JsonObject = {}): { readonly id: number; readonly answer: Promise<Answer> } {
    const id = this.#nextId++;
    const answer = new Promise<Answer>((resolve, reject) => {
      this.#waiting.set(id, resolve);
      this.channel.post({ jsonrpc: "2.0", id, method, params: this.#inEra(params) }).catch(reject);
    });
    return { id, answer };
  }

  request(method: string, params: JsonObject = {}): Promise<Answer> {
    return this.start(method, params).answer;
  }

  call(name: string, args: JsonObject = {}, meta?: JsonObject): Promise<Answer> {
    return this.request("tools/call", { name, arguments: args, _meta: meta });
  }

  /** Sends a request, and again with the answers for as long as the server asks for input. */
  async complete(method: string, params: JsonObject): Promise<Answer> {
    let answer = await this.request(method, params);
    while (answer.result?.["resultType"] === "input_required") {
      const { inputRequests, requestState } = answer.result;
      const responses: JsonObject = {};
      for (const [key, question] of Object.entries(isJsonObject(inputRequests) ? inputRequests : {})) {
        const { method: asked, params: with_ } = question as Said;
        responses[key] = await this.#served(asked, with_);
      }
      answer = await this.request(method, {
        ...params,
        inputResponses: responses,
        ...(requestState === undefined ? {} : { requestState }),
      });
    }
    return answer;
  }

  notify(method: string, params?: JsonObject): Promise<void> {
    return this.channel.post({ jsonrpc: "2.0", method, params });
  }

  /** As the era and the transport want it. */
  async cancel(id: number): Promise<void> {
    if (this.era === "modern" && this.channel.hangUp(id)) return;
    await this.notify("notifications/cancelled", { requestId: id, reason: "no longer wanted" });
  }

  noticed(method: string): (JsonObject | undefined)[] {
    return this.notices.filter((notice) => notice.method === method).map(({ params }) => params);
  }

  close(): Promise<void> {
    return this.channel.close();
  }

  #inEra(params: JsonObject): JsonObject {
    if (this.era === "legacy") return params;
    const envelope = {
      [`${PREFIX}protocolVersion`]: "2026-07-28",
      [`${PREFIX}clientInfo`]: { name: "raw", version: "1" },
      [`${PREFIX}clientCapabilities`]: this.#options.capabilities ?? {},
    };
    return { ...params, _meta: { ...envelope, ...(isJsonObject(params["_meta"]) ? params["_meta"] : {}) } };
  }

  #receive(message: JsonObject): void {
    const { id, method, params, result, error } = message;
    const given = isJsonObject(params) ? params : undefined;
    if (typeof method !== "string") {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      return waiting?.({ ...(isJsonObject(result) ? { result } : {}), ...(isJsonObject(error) ? { error } : {}) });
    }
    if (id === undefined) return void this.notices.push({ method, params: given });
    void this.#served(method, given).then(
      (served) => this.channel.post({ jsonrpc: "2.0", id, result: served }),
      (thrown: unknown) =>
        this.channel.post({
          jsonrpc: "2.0",
          id,
          error: isJsonObject(thrown) ? thrown : { code: -32000, message: String(thrown) },
        }),
    );
  }

  async #served(method: string, params: JsonObject | undefined): Promise<JsonObject> {
    this.asked.push({ method, params });
    const { serve } = this.#options;
    if (serve === undefined) throw new Error(`nobody serves ${method}`);
    return serve(method, params);
  }
}
