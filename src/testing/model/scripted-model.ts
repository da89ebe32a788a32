/** A model provider on this computer that plays a scenario, for tests of whatever talks to a model. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { endsWithin } from "../../base/async.ts";
import { type Clock, systemClock } from "../../base/clock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import { readJsonBody, readHeaders } from "../read-request.ts";
import { anthropic } from "./anthropic-protocol.ts";
import { gemini } from "./gemini-protocol.ts";
import type { ModelRequest } from "./model-request.ts";
import { openAiChat } from "./openai-chat-protocol.ts";
import { openAiResponses } from "./openai-responses-protocol.ts";
import { type Frame, type Protocol, RejectedRequest } from "./provider-protocol.ts";
import {
  type AnswerTurn,
  completeAnswer,
  type Scenario,
  type ScenarioOptions,
  ScenarioPlayer,
  type ScriptedAnswer,
  type Turn,
} from "./scenario.ts";

export interface ScriptedModelOptions extends ScenarioOptions {
  /** The key that requests must bring; any, and none, if absent. */
  readonly apiKey?: string;
  /** The models that `GET /v1/models` lists. */
  readonly models?: readonly string[];
  /** For `delayMs`. */
  readonly clock?: Clock;
}

export interface ScriptedModel extends AsyncDisposable {
  /** Without a path: OpenAI's and Anthropic's protocols are at `${url}/v1`, Gemini's at `${url}/v1beta`. */
  readonly url: string;
  /** The accepted requests, in order of arrival. */
  readonly requests: readonly ModelRequest[];
  /** Refused requests, failed expectations, and requests after the end of the scenario. */
  readonly problems: readonly string[];
  /** Number of clients that disconnected before the end of their answer. */
  readonly aborted: number;
  /** The `count`th request, once it is there; counted from 1. Rejects when the model is closed before. */
  waitForRequest(count: number): Promise<ModelRequest>;
  /** Breaks all connections. */
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
  readonly #script: ScenarioPlayer;
  readonly #protocols = createProtocols();
  readonly #server: Server;
  readonly #waiting = new Set<Waiting>();
  #answers = 0;
  #closed = false;

  constructor(scenario: Scenario, options: ScriptedModelOptions) {
    this.#options = options;
    this.#script = new ScenarioPlayer(scenario, options);
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
    const headers = readHeaders(incoming);
    const protocol = protocolForPath(path, headers, this.#protocols);
    try {
      if (!this.#hasKey(headers)) return this.#refuse(response, protocol, undefined, 401);
      const list = modelList(incoming.method, path, protocol, this.#options.models ?? ["scripted"]);
      if (list !== undefined) return sendJson(response, 200, list);
      if (incoming.method !== "POST" || protocol === undefined)
        return this.#refuse(response, protocol, `There is no ${incoming.method} ${path}`, 404);
      const body = await readJsonBody(incoming);
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
    const answer = completeAnswer(turn, request, ++this.#answers, protocol.callPrefix);
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

interface Protocols {
  readonly chat: Protocol;
  readonly responses: Protocol;
}

/** A set for one server, because one of them remembers. */
function createProtocols(): Protocols {
  return { chat: openAiChat, responses: openAiResponses() };
}

/** A base address without `/v1` is as good: clients differ in what they expect. */
function protocolForPath(
  path: string,
  headers: Readonly<Record<string, string>>,
  { chat, responses }: Protocols,
): Protocol | undefined {
  if (path.endsWith("/chat/completions")) return chat;
  if (path.endsWith("/responses")) return responses;
  if (path.endsWith("/messages")) return anthropic;
  if (/\/models\/[^/]+:(?:stream)?generateContent$/i.test(path)) return gemini;
  if (path.endsWith("/models")) return headers["anthropic-version"] === undefined ? chat : anthropic;
  return undefined;
}

/** The answer to a request for the list of models; undefined for any other. */
function modelList(
  method: string | undefined,
  path: string,
  protocol: Protocol | undefined,
  ids: readonly string[],
): JsonObject | undefined {
  if (method !== "GET" || !path.endsWith("/models")) return undefined;
  if (protocol?.name !== "anthropic")
    return { object: "list", data: ids.map((id) => ({ id, object: "model", created: 0, owned_by: "toolcrib" })) };
  const created = new Date(0).toISOString();
  const data = ids.map((id) => ({ type: "model", id, display_name: id, created_at: created }));
  return { data, has_more: false, first_id: ids[0] ?? null, last_id: ids.at(-1) ?? null };
}

const FAILURE_TEXT = "The scenario interrupts the answer here.";

interface AnswerParts {
  readonly protocol: Protocol;
  readonly turn: AnswerTurn;
  readonly answer: ScriptedAnswer;
  readonly stream: boolean;
  readonly clock: Clock;
}

/**
 * Sends an answer, with the faults that its turn asks for. Resolves when everything is sent, the connection was broken on
 * purpose, or the client is gone.
 */
async function sendAnswer(response: ServerResponse, parts: AnswerParts): Promise<void> {
  const { turn } = parts;
  if (turn.dropAfter === "request") response.destroy();
  else if (parts.stream) await sendStream(response, parts);
  else await sendWhole(response, parts);
}

async function sendStream(response: ServerResponse, { protocol, turn, answer, clock }: AnswerParts): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
  const { delayMs: ms = 0 } = turn;
  const closed = waitForClose(response);
  let sent = 0;
  for (const frame of protocol.frames(answer)) {
    if (frame.piece === true) {
      if (await interrupt(response, protocol, turn, sent)) return;
      if (ms > 0) await endsWithin(closed, { ms, clock });
    }
    if (response.destroyed) return;
    await write(response, frame);
    if (frame.piece !== true) continue;
    sent++;
    if (await interrupt(response, protocol, turn, sent)) return;
  }
  response.end();
}

/** Whether the turn ends here, before it is complete. */
async function interrupt(
  response: ServerResponse,
  protocol: Protocol,
  turn: AnswerTurn,
  sent: number,
): Promise<boolean> {
  if (turn.dropAfter === sent) {
    response.destroy();
    return true;
  }
  if (turn.stallAfter === sent) {
    await waitForClose(response);
    return true;
  }
  if (turn.failAfter === sent) {
    await write(response, protocol.failure(FAILURE_TEXT));
    response.end();
    return true;
  }
  return false;
}

/** Nothing of an answer without a stream arrives before all of it does. */
async function sendWhole(response: ServerResponse, { protocol, turn, answer, clock }: AnswerParts): Promise<void> {
  if (turn.dropAfter !== undefined) return void response.destroy();
  if (turn.stallAfter !== undefined) return waitForClose(response);
  const { delayMs: ms = 0 } = turn;
  if (ms > 0) await endsWithin(waitForClose(response), { ms, clock });
  if (turn.failAfter !== undefined) sendJson(response, 500, protocol.error({ status: 500, message: FAILURE_TEXT }));
  else sendJson(response, 200, protocol.whole(answer));
}

function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

/** Waits until it is in the kernel's hands, so that breaking the connection right after does not take it along. */
async function write(response: ServerResponse, { event, data }: Frame): Promise<void> {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  const line = event === undefined ? "" : `event: ${event}\n`;
  await new Promise<void>((resolve) => {
    response.write(`${line}data: ${text}\n\n`, () => resolve());
  });
}

async function waitForClose(response: ServerResponse): Promise<void> {
  if (response.destroyed) return;
  await new Promise<void>((resolve) => response.once("close", () => resolve()));
}
