/** One client's session at a fake server: answers its requests, and asks it in turn. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { LATEST_LEGACY_VERSION, LEGACY_VERSIONS } from "../../model/protocol.ts";
import { type FakeCall, type FakeTools, definitions, runTool } from "./fake-tool.ts";

/** Sends a message to the client, on the stream of the request that it belongs to. */
export type Send = (message: JsonObject) => void;

export interface FakeSessionParts {
  readonly name: string;
  readonly instructions: string | undefined;
  readonly tools: () => FakeTools;
  readonly onCall: (name: string, args: JsonObject) => void;
}

const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;

export class FakeSession {
  readonly #parts: FakeSessionParts;
  readonly #asked = new Map<string, (answer: JsonObject) => void>();
  readonly #running = new Map<unknown, AbortController>();
  #questions = 0;

  constructor(parts: FakeSessionParts) {
    this.#parts = parts;
  }

  /** The answer to a request, and what is sent before it. */
  async answer(request: JsonObject, headers: Readonly<Record<string, string>>, send: Send): Promise<JsonObject> {
    const { id, method } = request;
    const params = isJsonObject(request["params"]) ? request["params"] : {};
    const envelope = { jsonrpc: "2.0", id };
    const { name, instructions, tools } = this.#parts;
    switch (method) {
      case "initialize": {
        const wanted = LEGACY_VERSIONS.find((version) => version === params["protocolVersion"]);
        const result = {
          protocolVersion: wanted ?? LATEST_LEGACY_VERSION,
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name, version: "1.0.0" },
          instructions,
        };
        return { ...envelope, result };
      }
      case "ping":
        return { ...envelope, result: {} };
      case "tools/list":
        return { ...envelope, result: { tools: definitions(tools()) } };
      case "tools/call":
        return { ...envelope, ...(await this.#call(id, params, headers, send)) };
      default:
        return { ...envelope, error: { code: METHOD_NOT_FOUND, message: `Method not found: ${String(method)}` } };
    }
  }

  /** A notification, or the answer to one of our questions. */
  take(message: JsonObject): void {
    if (message["method"] === "notifications/cancelled") {
      const params = message["params"];
      if (isJsonObject(params)) this.#running.get(params["requestId"])?.abort();
    }
    if (message["method"] === undefined) this.#asked.get(String(message["id"]))?.(message);
  }

  /** Everything that runs is over. */
  end(): void {
    for (const controller of this.#running.values()) controller.abort();
  }

  async #call(id: unknown, params: JsonObject, headers: FakeCall["headers"], send: Send): Promise<JsonObject> {
    const name = String(params["name"]);
    const args = isJsonObject(params["arguments"]) ? params["arguments"] : {};
    this.#parts.onCall(name, args);
    const controller = new AbortController();
    this.#running.set(id, controller);
    const meta = params["_meta"];
    const progressToken = isJsonObject(meta) ? meta["progressToken"] : undefined;
    try {
      const result = await runTool(this.#parts.tools(), name, args, {
        signal: controller.signal,
        headers,
        progress(progress, total, message) {
          if (progressToken === undefined) return;
          const told = { progressToken, progress, total, message };
          send({ jsonrpc: "2.0", method: "notifications/progress", params: told });
        },
        elicit: (question) => this.#ask("elicitation/create", question, send, controller.signal),
        sample: (question) => this.#ask("sampling/createMessage", question, send, controller.signal),
      });
      return result === undefined ? { error: { code: INVALID_PARAMS, message: `Unknown tool: ${name}` } } : { result };
    } finally {
      this.#running.delete(id);
    }
  }

  async #ask(method: string, params: JsonObject, send: Send, signal: AbortSignal): Promise<JsonObject> {
    const id = `question-${++this.#questions}`;
    const answered = new Promise<JsonObject>((resolve, reject) => {
      this.#asked.set(id, resolve);
      signal.addEventListener("abort", () => reject(new UnansweredQuestion(`${method}: the call has ended`)));
    });
    send({ jsonrpc: "2.0", id, method, params });
    const { result, error } = await answered.finally(() => this.#asked.delete(id));
    if (isJsonObject(result)) return result;
    throw new UnansweredQuestion(`${method}: ${isJsonObject(error) ? String(error["message"]) : "no answer"}`);
  }
}

class UnansweredQuestion extends Error {
  override readonly name = "UnansweredQuestion";
}
