/**
 * Tasks between a caller and a server of different generations. Those of 2025-11-25 are asked for by the caller, and their result is waited
 * for; in the extension of 2026 the server decides, and the caller polls and gets the result with the state. A caller that knows neither
 * gets what the task ends with.
 */
import { randomUUID } from "node:crypto";
import { type CancelSignal, pause } from "../base/async.ts";
import type { Clock } from "../base/clock.ts";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import {
  type Era,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  MISSING_CAPABILITY,
  RELATED_TASK,
  type RpcError,
  TASKS_EXTENSION,
} from "../model/protocol.ts";
import type { ClientSide, ServerRequestContext, TaskRequest, UseOptions } from "../model/source.ts";
import { errorFromRpc, rpcOf, rpcRefusal } from "./rpc-error.ts";

const DEFAULT_POLL_MS = 1000;
/** A server cannot make a hub poll without a pause, nor fall asleep over a task. */
const MIN_POLL_MS = 50;
const MAX_POLL_MS = 30_000;
/** How long the effect of a cancellation is waited for: in the extension it may come later, or never. */
const CANCEL_WAIT_MS = 5000;
/** A legacy server may send its questions some time after it says that it has some. */
const QUESTION_WAIT_MS = 2000;
const QUESTION_BATCH_MS = 20;
const MAX_KEPT = 1000;
const DEFAULT_TTL_MS = 5 * 60_000;
const MAX_TTL_MS = 60 * 60_000;

/** The form of tasks that a server has; undefined if it has none. */
export function tasksOf({ era, capabilities }: { era: Era; capabilities: Readonly<JsonObject> }): Era | undefined {
  if (era === "modern") return isJsonObject(at(capabilities, "extensions", TASKS_EXTENSION)) ? era : undefined;
  return isJsonObject(at(capabilities, "tasks", "requests", "tools", "call")) ? era : undefined;
}

function at(value: unknown, ...keys: readonly string[]): unknown {
  return keys.reduce((found, key) => (isJsonObject(found) ? found[key] : undefined), value);
}

/** Client capabilities that declare the extension: the hub understands it for clients that do not. */
export function withTasks(capabilities: Readonly<JsonObject>): JsonObject {
  const { extensions } = capabilities;
  return { ...capabilities, extensions: { ...(isJsonObject(extensions) ? extensions : {}), [TASKS_EXTENSION]: {} } };
}

export function withoutTasks(capabilities: JsonObject): JsonObject {
  const { extensions } = capabilities;
  if (!isJsonObject(extensions) || extensions[TASKS_EXTENSION] === undefined) return capabilities;
  const { [TASKS_EXTENSION]: _tasks, ...others } = extensions;
  return { ...capabilities, extensions: others };
}

/** One use of a tool on a server that has tasks. */
export interface TaskRun {
  readonly server: Era;
  readonly caller: UseOptions["tasks"];
  /** `task` of a legacy caller: it wants one. */
  readonly wish: JsonObject | undefined;
  /** The tool's `execution.taskSupport`. */
  readonly support: unknown;
  /** Calls the tool; `task` asks a legacy server for a task, and tells a modern one that it may begin one. */
  readonly call: (task: JsonObject | undefined) => Promise<JsonObject>;
  /** In the server's form. */
  readonly request: (task: TaskRequest, over?: { client?: ClientSide; signal?: AbortSignal }) => Promise<JsonObject>;
  /** Has the caller's client answer a question of the server. */
  readonly answer: (method: string, params: JsonObject) => Promise<JsonObject>;
  readonly client: ClientSide;
  readonly signal: CancelSignal;
  readonly clock: Clock;
  /** How long a result is waited for. */
  readonly maxMs: number;
  readonly memory: TaskMemory;
}

/** Calls a tool. The result, or the task that it began, is in the caller's form. */
export async function callWithTasks(run: TaskRun): Promise<JsonObject> {
  const { server, caller, wish, support } = run;
  if (server === caller) return run.call(server === "legacy" ? wish : {});
  if (server === "legacy") {
    const isWanted = support === "required" || (caller === "modern" && support === "optional");
    if (!isWanted) return run.call(undefined);
    if (caller === "none") throw tasksNeeded();
    const begun = await run.call({});
    const { task, ...others } = begun;
    if (!isJsonObject(task)) return begun;
    return caller === "modern" ? { ...others, ...toModern(task), resultType: "task" } : endOf(run, task);
  }
  if (caller === "legacy" && wish !== undefined) {
    const { _meta, ...begun } = await run.call({});
    if (begun["resultType"] !== "task") return { task: run.memory.keepEnded({ _meta, ...begun }, wish) };
    return { task: toLegacy(begun), ...(_meta === undefined ? {} : { _meta }) };
  }
  try {
    return await run.call(undefined);
  } catch (error) {
    if (caller === "none" || !needsTasks(error)) throw error;
    const begun = await run.call({});
    return begun["resultType"] === "task" ? endOf(run, begun) : begun;
  }
}

/** The error for a client of the modern era that did not declare the extension. */
export const TASKS_NEEDED = {
  code: MISSING_CAPABILITY,
  message: `The client must declare the extension ${TASKS_EXTENSION} for this.`,
  data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
} as const satisfies RpcError;

function tasksNeeded(): ToolcribError {
  return new ToolcribError("denied", TASKS_NEEDED.message, { details: { rpc: TASKS_NEEDED } });
}

/** The server refused to run it for a caller that did not declare the extension. */
function needsTasks(error: unknown): boolean {
  const rpc = rpcOf(error);
  const needed = at(rpc?.data, "requiredCapabilities", "extensions", TASKS_EXTENSION);
  return rpc?.code === MISSING_CAPABILITY && needed !== undefined;
}

/** A request about a task, in the caller's form. */
export async function requestAboutTask(run: TaskRun, task: TaskRequest): Promise<JsonObject> {
  const { server, caller } = run;
  const taskId = String(task.params["taskId"]);
  if (server === caller) return run.request(task);
  if (server === "modern") return legacyRequest(run, task, taskId);
  switch (task.method) {
    case "tasks/get":
      return detailed(run, taskId);
    case "tasks/cancel":
      return cancelLegacy(run, task, taskId);
    case "tasks/update": {
      const { inputResponses } = task.params;
      // That there is such a task is for the server to say.
      await state(run, taskId);
      run.memory.answer(taskId, isJsonObject(inputResponses) ? inputResponses : {});
      return {};
    }
    default:
      throw unknownMethod(task.method);
  }
}

/** Of a legacy caller, about a task of a modern server. */
async function legacyRequest(run: TaskRun, { method }: TaskRequest, taskId: string): Promise<JsonObject> {
  const ended = run.memory.ended(taskId);
  switch (method) {
    case "tasks/get":
      return ended?.task ?? toLegacy(await state(run, taskId));
    case "tasks/result": {
      const { resultType: _complete, ...result } = ended?.result ?? (await resultOf(run, taskId));
      const meta = isJsonObject(result["_meta"]) ? result["_meta"] : {};
      return { ...result, _meta: { ...meta, [RELATED_TASK]: { taskId } } };
    }
    case "tasks/cancel": {
      const before = ended?.task ?? (await state(run, taskId));
      if (isOver(before)) throw rpcRefusal(INVALID_PARAMS, `The task is ${String(before["status"])} already.`);
      await run.request({ method, params: { taskId } });
      return toLegacy(await afterCancel(run, taskId));
    }
    default:
      throw unknownMethod(method);
  }
}

function unknownMethod(method: string): ToolcribError {
  return rpcRefusal(METHOD_NOT_FOUND, `The server of this task does not know ${method}.`);
}

function state(run: TaskRun, taskId: string): Promise<JsonObject> {
  return run.request({ method: "tasks/get", params: { taskId } });
}

function isOver({ status }: JsonObject): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** The extension acknowledges a cancellation before it has an effect; a legacy caller is answered with the effect. */
async function afterCancel(run: TaskRun, taskId: string): Promise<JsonObject> {
  const { clock, signal } = run;
  const until = clock.now() + CANCEL_WAIT_MS;
  for (;;) {
    const now = await state(run, taskId);
    if (isOver(now) || clock.now() >= until || signal.aborted) return now;
    await pause(Math.min(pollMs(now), 1000), { clock, signal });
  }
}

/** A legacy server refuses to cancel what has ended, which the extension acknowledges. */
async function cancelLegacy(run: TaskRun, task: TaskRequest, taskId: string): Promise<JsonObject> {
  try {
    await run.request(task);
  } catch (error) {
    if (rpcOf(error)?.code !== INVALID_PARAMS || !isOver(await state(run, taskId))) throw error;
  }
  return {};
}

/** The state of a legacy server's task with its result, error or questions, as the extension has it. */
async function detailed(run: TaskRun, taskId: string): Promise<JsonObject> {
  const now = toModern(await state(run, taskId));
  switch (now["status"]) {
    case "completed":
    // A tool's own error is a failure there and a result here.
    case "failed":
      try {
        const result = await run.request({ method: "tasks/result", params: { taskId } });
        return { ...now, status: "completed", result: withoutRelatedTask(result) };
      } catch (error) {
        const rpc = rpcOf(error);
        if (rpc === undefined) throw error;
        return { ...now, status: "failed", error: rpc };
      }
    case "input_required": {
      const inputRequests = await run.memory.questions(run, taskId);
      // None has come yet: there is nothing to be answered.
      return inputRequests === undefined ? { ...now, status: "working" } : { ...now, inputRequests };
    }
    default:
      return now;
  }
}

function withoutRelatedTask(result: JsonObject): JsonObject {
  const { _meta, ...rest } = result;
  if (!isJsonObject(_meta)) return result;
  const { [RELATED_TASK]: _task, ...meta } = _meta;
  return Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta };
}

/** For a caller that knows no tasks: the result that this one ends with. Whoever gives up cancels it. */
async function endOf(run: TaskRun, { taskId }: JsonObject): Promise<JsonObject> {
  const params = { taskId: String(taskId) };
  try {
    if (run.server === "modern") return await resultOf(run, params.taskId);
    return withoutRelatedTask(await run.request({ method: "tasks/result", params }));
  } catch (error) {
    const isGivenUp = run.signal.aborted || (error instanceof ToolcribError && error.code === "timeout");
    const signal = AbortSignal.timeout(CANCEL_WAIT_MS);
    if (isGivenUp) void run.request({ method: "tasks/cancel", params }, { signal }).catch(() => {});
    throw error;
  }
}

/** Polls a modern server's task until it ends. Its questions go to the caller's client. */
async function resultOf(run: TaskRun, taskId: string): Promise<JsonObject> {
  const { clock, signal, maxMs } = run;
  const until = clock.now() + maxMs;
  const answered = new Set<string>();
  for (;;) {
    const now = await state(run, taskId);
    switch (now["status"]) {
      case "completed":
        return isJsonObject(now["result"]) ? now["result"] : {};
      case "failed":
        throw errorFromRpc(failureIn(now));
      case "cancelled":
        throw rpcRefusal(INVALID_PARAMS, "The task was cancelled.");
      case "input_required":
        await answerNew(run, taskId, now["inputRequests"], answered);
        break;
      default:
    }
    if (clock.now() >= until) {
      throw new ToolcribError("timeout", `The task did not end within ${Math.round(maxMs / 1000)} seconds.`);
    }
    await pause(pollMs(now), { clock, signal });
    if (signal.aborted) throw new ToolcribError("cancelled", "The call was cancelled by the caller.");
  }
}

function failureIn({ error, statusMessage }: JsonObject): RpcError {
  // Checked as far as it is used.
  if (isJsonObject(error) && typeof error["code"] === "number") return error as unknown as RpcError;
  return { code: INTERNAL_ERROR, message: typeof statusMessage === "string" ? statusMessage : "The task failed." };
}

async function answerNew(run: TaskRun, taskId: string, asked: unknown, answered: Set<string>): Promise<void> {
  const requests = isJsonObject(asked) ? Object.entries(asked).filter(([key]) => !answered.has(key)) : [];
  if (requests.length === 0) return;
  const answers = requests.map(async ([key, request]) => {
    answered.add(key);
    const { method, params } = isJsonObject(request) ? request : {};
    return [key, await run.answer(String(method), isJsonObject(params) ? params : {})] as const;
  });
  const inputResponses = Object.fromEntries(await Promise.all(answers));
  await run.request({ method: "tasks/update", params: { taskId, inputResponses } });
}

function pollMs({ pollIntervalMs }: JsonObject): number {
  const wanted = typeof pollIntervalMs === "number" ? pollIntervalMs : DEFAULT_POLL_MS;
  return Math.min(Math.max(wanted, MIN_POLL_MS), MAX_POLL_MS);
}

/** The state of a task of 2025-11-25 in the words of the extension. */
function toModern({ ttl, pollInterval, ...task }: JsonObject): JsonObject {
  return { ...task, ttlMs: ttl ?? null, ...(pollInterval === undefined ? {} : { pollIntervalMs: pollInterval }) };
}

/** The state of a task of the extension in the words of 2025-11-25, without its result, error and questions. */
export function toLegacy(task: JsonObject): JsonObject {
  const { ttlMs, pollIntervalMs, result, error: _error, inputRequests: _asked, resultType: _type, ...rest } = task;
  const isFailed = rest["status"] === "completed" && isJsonObject(result) && result["isError"] === true;
  return {
    ...rest,
    ...(isFailed ? { status: "failed" } : {}),
    ttl: ttlMs ?? null,
    ...(pollIntervalMs === undefined ? {} : { pollInterval: pollIntervalMs }),
  };
}

interface EndedTask {
  readonly task: JsonObject;
  readonly result: JsonObject;
  readonly until: number;
}

/** The part of the state of tasks that a connection keeps, because its server does not. */
export class TaskMemory {
  readonly #clock: Clock;
  readonly #ended = new Map<string, EndedTask>();
  readonly #asking = new Map<string, TaskQuestions>();
  /** By id: until when it may go on. */
  readonly #running = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For how long tasks may go on that were last seen running: their server must not be put to sleep. */
  get busyMs(): number {
    const now = this.#clock.now();
    for (const [id, until] of this.#running) if (until <= now) this.#running.delete(id);
    return Math.max(0, ...[...this.#running.values()].map((until) => until - now));
  }

  /** Takes note of a task in an answer of the server; the end of one may be in the answer to what was asked about it. */
  note(answer: JsonObject, about?: TaskRequest): JsonObject {
    if (about?.method === "tasks/result" || about?.method === "tasks/cancel") {
      this.#running.delete(String(about.params["taskId"]));
    }
    const task = isJsonObject(answer["task"]) ? answer["task"] : answer;
    const { taskId, status, ttl, ttlMs = ttl } = task;
    if (typeof taskId !== "string" || typeof status !== "string") return answer;
    this.#running.delete(taskId);
    const [oldest] = this.#running.keys();
    if (oldest !== undefined && this.#running.size >= MAX_KEPT) this.#running.delete(oldest);
    const leftMs = typeof ttlMs === "number" ? Math.min(ttlMs, MAX_TTL_MS) : MAX_TTL_MS;
    if (!isOver(task)) this.#running.set(taskId, this.#clock.now() + leftMs);
    return answer;
  }

  /** A server of the extension answered at once, where a task was asked for. */
  keepEnded(result: JsonObject, wish: JsonObject): JsonObject {
    const now = this.#clock.now();
    const { ttl: wanted } = wish;
    const ttl = typeof wanted === "number" && wanted > 0 ? Math.min(wanted, MAX_TTL_MS) : DEFAULT_TTL_MS;
    const time = new Date(now).toISOString();
    const task: JsonObject = {
      taskId: `toolcrib-${randomUUID()}`,
      status: result["isError"] === true ? "failed" : "completed",
      createdAt: time,
      lastUpdatedAt: time,
      ttl,
    };
    for (const [id, { until }] of this.#ended) if (until <= now || this.#ended.size >= MAX_KEPT) this.#ended.delete(id);
    this.#ended.set(String(task["taskId"]), { task, result, until: now + ttl });
    return task;
  }

  ended(taskId: string): EndedTask | undefined {
    const known = this.#ended.get(taskId);
    return known !== undefined && known.until > this.#clock.now() ? known : undefined;
  }

  /** The open questions of a legacy server about a task; undefined if none has come yet. */
  questions(run: TaskRun, taskId: string): Promise<JsonObject | undefined> {
    let asking = this.#asking.get(taskId);
    if (asking === undefined) {
      asking = new TaskQuestions(run.client);
      this.#asking.set(taskId, asking);
      const [oldest] = this.#asking;
      if (oldest !== undefined && this.#asking.size > MAX_KEPT) oldest[1].end();
      // It asks on the stream of this request, which outlives the one that found out.
      const { client } = asking;
      // The client may never answer.
      const signal = AbortSignal.any([asking.signal, AbortSignal.timeout(MAX_TTL_MS)]);
      const gone = (): void => void this.#asking.delete(taskId);
      void run.request({ method: "tasks/result", params: { taskId } }, { client, signal }).then(gone, gone);
    }
    return asking.open(this.#clock);
  }

  answer(taskId: string, responses: JsonObject): void {
    this.#asking.get(taskId)?.answer(responses);
  }
}

interface TaskQuestion {
  readonly method: string;
  readonly params: JsonObject;
  readonly resolve: (answer: JsonObject) => void;
}

/** Collects what a server asks, for a caller that fetches the questions and brings the answers. */
class TaskQuestions {
  readonly client: ClientSide;
  readonly #ending = new AbortController();
  readonly #questions = new Map<string, TaskQuestion>();
  readonly #asked = Promise.withResolvers<void>();
  #hasAsked = false;

  constructor(caller: ClientSide) {
    const { sampling, elicitation } = caller.capabilities;
    const asker =
      (method: string) =>
      (params: JsonObject, { signal }: ServerRequestContext): Promise<JsonObject> =>
        this.#ask(method, params, signal);
    this.client = {
      key: caller.key,
      capabilities: caller.capabilities,
      rootsOnRequest: caller.rootsOnRequest,
      sample: isJsonObject(sampling) ? asker("sampling/createMessage") : undefined,
      elicit: isJsonObject(elicitation) ? asker("elicitation/create") : undefined,
    };
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  async open(clock: Clock): Promise<JsonObject | undefined> {
    // Later ones are there at a later poll.
    if (!this.#hasAsked) {
      const late = new AbortController();
      await Promise.race([this.#asked.promise, pause(QUESTION_WAIT_MS, { clock, signal: late.signal })]);
      late.abort();
      await pause(QUESTION_BATCH_MS, { clock });
    }
    if (this.#questions.size === 0) return undefined;
    return Object.fromEntries([...this.#questions].map(([key, { method, params }]) => [key, { method, params }]));
  }

  answer(responses: JsonObject): void {
    for (const [key, question] of [...this.#questions]) {
      const given = responses[key];
      if (!isJsonObject(given)) continue;
      this.#questions.delete(key);
      question.resolve(given);
    }
  }

  end(): void {
    this.#ending.abort();
  }

  #ask(method: string, params: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    const key = randomUUID();
    return new Promise((resolve, reject) => {
      this.#questions.set(key, { method, params: withoutRelatedTask(params), resolve });
      signal.addEventListener("abort", () => {
        this.#questions.delete(key);
        reject(new ToolcribError("cancelled", `${method} is no longer needed.`));
      });
      this.#hasAsked = true;
      this.#asked.resolve();
    });
  }
}
