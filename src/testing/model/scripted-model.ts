/** A model provider on this computer that plays a scenario, for tests of whatever talks to a model. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type Clock, systemClock } from "../../model/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import { bodyOf, headersOf } from "../incoming.ts";
import { answerOf } from "./answer.ts";
import type { ModelRequest } from "./model-request.ts";
import { type Protocol, RejectedRequest } from "./protocol.ts";
import { modelList, protocolOf, protocols } from "./routes.ts";
import { Script, type ScriptOptions } from "./script.ts";
import { sendAnswer, sendJson } from "./send-answer.ts";
import type { Scenario, Turn } from "./turn.ts";

export interface ScriptedModelOptions extends ScriptOptions {
  /** The key that requests must bring; any, and none, if absent. */
  readonly apiKey?: string;
  /** What `GET /v1/models` lists. */
  readonly models?: readonly string[];
  /** For `delayMs`. */
  readonly clock?: Clock;
}

export interface ScriptedModel extends AsyncDisposable {
  /** Without a path: OpenAI's and Anthropic's protocols are at `${url}/v1`, Gemini's at `${url}/v1beta`. */
  readonly url: string;
  /** Those that were taken, in order, from when they came in. */
  readonly requests: readonly ModelRequest[];
  /** What was wrong: requests that were refused, failed expectations, requests after the end of the scenario. */
  readonly problems: readonly string[];
  /** Clients that went away before the end of their answer. */
  readonly aborted: number;
  /** The `count`th request, once it is there; counted from 1. Rejects when the model is closed before. */
  waitForRequest(count: number): Promise<ModelRequest>;
  /** Breaks what is under way. */
  close(): Promise<void>;
}

/**
 * Checks requests as the provider would: a history with a missing result, or a tool name that it does not take, is an error.
 *
 * @example
 * await using model = await startScriptedModel([call("notes__add", { text: "milk" }), text("Noted.")]);
 * const agent = createAgent({ hub, model: { baseUrl: `${model.url}/v1`, model: "any" } });
 */
export async function startScriptedModel(
  scenario: Scenario,
  options: ScriptedModelOptions = {},
): Promise<ScriptedModel> {
  const model = new RunningModel(scenario, options);
  await model.listen();
  return model;
}

interface Waiting {
  readonly count: number;
  readonly resolve: (request: ModelRequest) => void;
  readonly reject: (error: ToolcribError) => void;
}

class RunningModel implements ScriptedModel {
  readonly requests: ModelRequest[] = [];
  readonly problems: string[] = [];
  aborted = 0;
  url = "";
  readonly #options: ScriptedModelOptions;
  readonly #script: Script;
  readonly #protocols = protocols();
  readonly #server: Server;
  readonly #waiting = new Set<Waiting>();
  #answers = 0;
  #closed = false;

  constructor(scenario: Scenario, options: ScriptedModelOptions) {
    this.#options = options;
    this.#script = new Script(scenario, options);
    this.#server = createServer((request, response) => void this.#handle(request, response));
  }

  async listen(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    // A TCP server has an address of this shape; a string stands for a pipe.
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  waitForRequest(count: number): Promise<ModelRequest> {
    const there = this.requests[count - 1];
    if (there !== undefined) return Promise.resolve(there);
    if (this.#closed) return Promise.reject(closedError(count));
    return new Promise((resolve, reject) => this.#waiting.add({ count, resolve, reject }));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const waiting of this.#waiting) waiting.reject(closedError(waiting.count));
    this.#waiting.clear();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (incoming.url ?? "/").split("?")[0] ?? "/";
    const headers = headersOf(incoming);
    const protocol = protocolOf(path, headers, this.#protocols);
    try {
      if (!this.#hasKey(headers)) return this.#refuse(response, protocol, undefined, 401);
      const list = modelList(incoming.method, path, protocol, this.#options.models ?? ["scripted"]);
      if (list !== undefined) return sendJson(response, 200, list);
      if (incoming.method !== "POST" || protocol === undefined)
        return this.#refuse(response, protocol, `There is no ${incoming.method} ${path}`, 404);
      const body = await bodyOf(incoming);
      if (body === undefined) throw new RejectedRequest("We could not parse the JSON body of your request.");
      const read = protocol.read(body, { headers, path });
      const request = { ...read, protocol: protocol.name, headers: withoutKey(headers), body };
      await this.#answer(protocol, request, response);
    } catch (thrown) {
      const status = thrown instanceof RejectedRequest ? thrown.status : 500;
      this.#refuse(response, protocol, thrown instanceof Error ? thrown.message : String(thrown), status);
    }
  }

  async #answer(protocol: Protocol, request: ModelRequest, response: ServerResponse): Promise<void> {
    let broken = false;
    response.once("close", () => {
      if (!response.writableFinished && !this.#closed && !broken) this.aborted++;
    });
    this.#record(request);
    const turn = await this.#script.next(request);
    if (turn === undefined)
      // Not a 5xx: clients would ask again and again.
      throw new RejectedRequest(`The scenario is over: there is no turn for request ${this.requests.length}.`);
    checkExpectation(turn, request);
    if (turn.status !== undefined) {
      const retry: Record<string, string> =
        turn.retryAfter === undefined ? {} : { "retry-after": String(turn.retryAfter) };
      return sendJson(response, turn.status, protocol.error({ message: undefined, ...turn }), retry);
    }
    broken = turn.dropAfter !== undefined;
    const answer = answerOf(turn, request, ++this.#answers, protocol.callPrefix);
    const { clock = systemClock } = this.#options;
    await sendAnswer(response, { protocol, turn, answer, stream: request.stream, clock });
  }

  #record(request: ModelRequest): void {
    this.requests.push(request);
    for (const waiting of this.#waiting) {
      if (this.requests.length < waiting.count) continue;
      this.#waiting.delete(waiting);
      waiting.resolve(request);
    }
  }

  #refuse(response: ServerResponse, protocol: Protocol | undefined, message: string | undefined, status: number): void {
    // A client that went away has done nothing wrong.
    if (response.destroyed) return;
    const body = (protocol ?? this.#protocols.chat).error({ status, message });
    this.problems.push(`${status}: ${message ?? "The key is wrong or missing."}`);
    sendJson(response, status, body);
  }

  #hasKey(headers: Readonly<Record<string, string>>): boolean {
    const { apiKey } = this.#options;
    if (apiKey === undefined) return true;
    return KEY_HEADERS.some((name) => headers[name]?.replace(/^Bearer /i, "") === apiKey);
  }
}

const KEY_HEADERS = ["authorization", "x-api-key", "x-goog-api-key"];

function checkExpectation(turn: Turn, request: ModelRequest): void {
  let problem: string | undefined;
  try {
    problem = turn.expect?.(request) ?? undefined;
  } catch (thrown) {
    problem = thrown instanceof Error ? thrown.message : String(thrown);
  }
  if (problem !== undefined) throw new RejectedRequest(`The request is not as expected: ${problem}`);
}

function withoutKey(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !KEY_HEADERS.includes(name)));
}

function closedError(count: number): ToolcribError {
  return new ToolcribError("cancelled", `The scripted model was closed before request ${count} came.`);
}
