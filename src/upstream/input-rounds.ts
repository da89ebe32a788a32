/** The modern era's way for a server to ask back: the result says what is missing, and the request is sent again. */
import { asToolcribError, ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";

const MAX_ROUNDS = 10;

interface InputRounds {
  /** Sends the request with these additional params. */
  readonly send: (extra: JsonObject) => Promise<JsonObject>;
  readonly answer: (method: string, params: JsonObject, signal: AbortSignal) => Promise<JsonObject>;
  readonly signal: AbortSignal;
}

export async function completeInput(rounds: InputRounds): Promise<JsonObject> {
  let result = await rounds.send({});
  for (let round = 0; result["resultType"] === "input_required"; round++) {
    if (round === MAX_ROUNDS) {
      throw new ToolcribError("tool_error", `The server asked for more input ${MAX_ROUNDS} times without finishing.`);
    }
    const { inputRequests, requestState } = result;
    const extra: JsonObject = {};
    if (isJsonObject(inputRequests)) extra["inputResponses"] = await answerAll(inputRequests, rounds);
    // Sent back untouched, and only if there was one: it belongs to the server.
    if (requestState !== undefined) extra["requestState"] = requestState;
    result = await rounds.send(extra);
  }
  return result;
}

async function answerAll(requests: JsonObject, rounds: InputRounds): Promise<JsonObject> {
  const siblings = new AbortController();
  const signal = AbortSignal.any([rounds.signal, siblings.signal]);
  try {
    const answers = await Promise.all(
      Object.entries(requests).map(async ([key, request]) => [key, await answerOne(request, rounds, signal)] as const),
    );
    return Object.fromEntries(answers);
  } finally {
    // After a failure the other questions are moot; after success this reaches nobody.
    siblings.abort();
  }
}

async function answerOne(request: unknown, rounds: InputRounds, signal: AbortSignal): Promise<JsonObject> {
  const method = isJsonObject(request) && typeof request["method"] === "string" ? request["method"] : "(no method)";
  const params = isJsonObject(request) && isJsonObject(request["params"]) ? request["params"] : {};
  try {
    return await rounds.answer(method, params, signal);
  } catch (thrown) {
    if (rounds.signal.aborted) throw new ToolcribError("cancelled", "The call was cancelled by the caller.");
    const error = asToolcribError(thrown);
    throw new ToolcribError("denied", `The server asked for ${method}, which was not answered: ${error.message}`, {
      hint: error.hint ?? "The callback that answers it failed.",
      cause: thrown,
    });
  }
}
