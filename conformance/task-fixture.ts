/**
 * A stdio server with the tools that the suite's scenarios about tasks name: `node conformance/task-fixture.ts modern|legacy`. The modern one
 * has the tasks extension, the legacy one the tasks of 2025-11-25. Not made with the SDK, which has neither.
 */
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";

type Fields = Record<string, unknown>;
const EXTENSION = "io.modelcontextprotocol/tasks";
const CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities";
const RELATED_TASK = "io.modelcontextprotocol/related-task";
const TTL_MS = 60_000;
const isModern = process.argv[2] === "modern";

interface Task {
  readonly id: string;
  readonly createdAt: string;
  status: "working" | "input_required" | "completed" | "failed" | "cancelled";
  readonly questions: Map<string, Question>;
  outcome?: { readonly result: Fields } | { readonly error: Fields };
  readonly ended: PromiseWithResolvers<void>;
  /** A legacy client has opened the stream of the result, on which it is asked. */
  readonly opened: PromiseWithResolvers<void>;
}

interface Question {
  readonly params: Fields;
  readonly resolve: (answer: Fields) => void;
}

const tasks = new Map<string, Task>();
const asked = new Map<string, (answer: Fields) => void>();
const send = (message: object): boolean => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));
const text = (value: string): Fields => ({ content: [{ type: "text", text: value }] });
const object = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});

class Failure extends Error {
  readonly rpc: Fields;

  constructor(code: number, message: string, data?: Fields) {
    super(message);
    this.rpc = { code, message, ...(data === undefined ? {} : { data }) };
  }
}

type Ask = (message: string, field: string) => Promise<Fields>;

interface Tool {
  readonly support?: "optional" | "required";
  run(args: Fields, ask: Ask): Promise<Fields>;
}

const TOOLS: Readonly<Record<string, Tool>> = {
  test_simple_text: { run: async () => text("Here.") },
  greet: { run: async ({ name }) => text(`Hello, ${String(name)}!`) },
  slow_compute: {
    support: "optional",
    run: async ({ seconds }) => {
      await pause(Number(seconds ?? 0) * 1000);
      return text("Computed.");
    },
  },
  failing_job: {
    support: "required",
    run: async () => {
      await pause(500);
      return { ...text("It failed."), isError: true };
    },
  },
  protocol_error_job: {
    support: "optional",
    run: () => Promise.reject(new Failure(-32603, "It broke.")),
  },
  confirm_delete: {
    support: "optional",
    run: async ({ filename }, ask) => {
      const { action } = await ask(`Delete ${String(filename)}?`, "confirm");
      return text(`The answer was ${String(action)}.`);
    },
  },
  multi_input: {
    support: "optional",
    run: async (_args, ask) => {
      const answers = await Promise.all([ask("Your name?", "name"), ask("Your town?", "town")]);
      return text(JSON.stringify(answers));
    },
  },
};

const question = (message: string, field: string): Fields => ({
  mode: "form",
  message,
  requestedSchema: { type: "object", properties: { [field]: { type: "string" } } },
});

function begin(tool: Tool, args: Fields): Task {
  const task: Task = {
    id: randomUUID(),
    createdAt: new Date().toISOString(),
    status: "working",
    questions: new Map(),
    ended: Promise.withResolvers(),
    opened: Promise.withResolvers(),
  };
  tasks.set(task.id, task);
  const ask: Ask = async (message, field) => {
    const params = question(message, field);
    const answer = await new Promise<Fields>((resolve) => {
      const key = randomUUID();
      task.questions.set(key, { params, resolve });
      task.status = "input_required";
      if (!isModern) void task.opened.promise.then(() => askLegacy(task, key, params));
    });
    return answer;
  };
  void tool.run(args, ask).then(
    (result) => finish(task, { result }),
    (error: unknown) => finish(task, { error: error instanceof Failure ? error.rpc : { code: -32603, message: "?" } }),
  );
  return task;
}

async function askLegacy(task: Task, key: string, params: Fields): Promise<void> {
  send({
    id: key,
    method: "elicitation/create",
    params: { ...params, _meta: { [RELATED_TASK]: { taskId: task.id } } },
  });
  answer(task, { [key]: await new Promise<Fields>((resolve) => asked.set(key, resolve)) });
}

function answer(task: Task, responses: Fields): void {
  for (const [key, { resolve }] of [...task.questions]) {
    if (responses[key] === undefined) continue;
    task.questions.delete(key);
    if (task.questions.size === 0 && task.status === "input_required") task.status = "working";
    resolve(object(responses[key]));
  }
}

function finish(task: Task, outcome: NonNullable<Task["outcome"]>): void {
  if (task.status === "cancelled") return;
  task.outcome = outcome;
  const isFailed = "error" in outcome || (!isModern && outcome.result["isError"] === true);
  task.status = isFailed ? "failed" : "completed";
  task.ended.resolve();
}

function shown({ id, status, createdAt }: Task): Fields {
  const common = { taskId: id, status, createdAt, lastUpdatedAt: new Date().toISOString() };
  return isModern ? { ...common, ttlMs: TTL_MS, pollIntervalMs: 100 } : { ...common, ttl: TTL_MS, pollInterval: 100 };
}

function taskOf({ taskId }: Fields): Task {
  const task = tasks.get(String(taskId));
  if (task === undefined) throw new Failure(-32602, "There is no such task.");
  return task;
}

const isOver = ({ status }: Task): boolean => status !== "working" && status !== "input_required";

async function call(params: Fields): Promise<Fields> {
  const { name, arguments: args, task: wanted, inputResponses } = params;
  if (name === "test_tool_with_task") return withTask(params, object(inputResponses));
  const tool = TOOLS[String(name)];
  if (tool === undefined) throw new Failure(-32602, "There is no such tool.");
  const isDeclared = object(object(object(params["_meta"])[CAPABILITIES_KEY])["extensions"])[EXTENSION] !== undefined;
  const mayBegin = tool.support !== undefined && (isModern ? isDeclared : wanted !== undefined);
  if (mayBegin) return created(begin(tool, object(args)));
  if (tool.support === "required") throw needed();
  const done = await tool.run(object(args), async () => ({ action: "cancel" }));
  return { ...(isModern ? { resultType: "complete" } : {}), ...done };
}

function needed(): Failure {
  if (!isModern) return new Failure(-32601, "This tool runs as a task only.");
  return new Failure(-32021, "Missing required client capability", {
    requiredCapabilities: { extensions: { [EXTENSION]: {} } },
  });
}

function created(task: Task): Fields {
  return isModern ? { resultType: "task", ...shown(task) } : { task: shown(task) };
}

/** Asks before it begins: a modern server by a result, a legacy one by a request in the middle of the call. */
async function withTask({ task: wanted }: Fields, responses: Fields): Promise<Fields> {
  if (!isModern && wanted === undefined) throw needed();
  let given = object(responses["user_name"]);
  if (responses["user_name"] === undefined) {
    const params = question("What is your name?", "name");
    if (isModern) {
      const inputRequests = { user_name: { method: "elicitation/create", params } };
      return { resultType: "input_required", inputRequests, requestState: "asked" };
    }
    const id = randomUUID();
    send({ id, method: "elicitation/create", params });
    given = await new Promise<Fields>((resolve) => asked.set(id, resolve));
  }
  return created(begin({ run: async () => text(`Hello, ${JSON.stringify(given["content"])}!`) }, {}));
}

const complete = isModern ? { resultType: "complete" } : {};
const cached = isModern ? { ...complete, ttlMs: 0, cacheScope: "private" } : {};
const capabilities = isModern
  ? { tools: {}, extensions: { [EXTENSION]: {} } }
  : { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };

const METHODS: Readonly<Record<string, (params: Fields) => Fields | Promise<Fields>>> = {
  ping: () => complete,
  "tools/list": () => ({
    ...cached,
    tools: [...Object.entries(TOOLS), ["test_tool_with_task", { support: "required" }] as const].map(
      ([name, { support }]) => ({
        ...{ name, inputSchema: { type: "object" } },
        ...(isModern || support === undefined ? {} : { execution: { taskSupport: support } }),
      }),
    ),
  }),
  "tools/call": call,
  "tasks/get": (params) => {
    const task = taskOf(params);
    if (!isModern) return shown(task);
    const questions = [...task.questions].map(([key, asking]) => [
      key,
      { method: "elicitation/create", params: asking.params },
    ]);
    return {
      ...complete,
      ...shown(task),
      ...task.outcome,
      ...(task.status === "input_required" ? { inputRequests: Object.fromEntries(questions) as Fields } : {}),
    };
  },
  "tasks/cancel": (params) => {
    const task = taskOf(params);
    if (isOver(task) && !isModern) throw new Failure(-32602, `The task is ${task.status}.`);
    if (!isOver(task)) {
      task.status = "cancelled";
      task.ended.resolve();
    }
    return isModern ? complete : shown(task);
  },
  ...(isModern
    ? {
        "server/discover": () => ({ ...cached, supportedVersions: ["2026-07-28"], capabilities }),
        "tasks/update": (params: Fields) => {
          answer(taskOf(params), object(params["inputResponses"]));
          return complete;
        },
      }
    : {
        initialize: ({ protocolVersion }: Fields) => ({
          ...{ protocolVersion, capabilities, serverInfo: { name: "tasks", version: "1" } },
        }),
        "tasks/result": async (params: Fields) => {
          const task = taskOf(params);
          task.opened.resolve();
          if (!isOver(task)) await task.ended.promise;
          const { outcome } = task;
          if (outcome === undefined) throw new Failure(-32602, "The task was cancelled.");
          if ("error" in outcome) throw new Failure(Number(outcome.error["code"]), String(outcome.error["message"]));
          return { ...outcome.result, _meta: { [RELATED_TASK]: { taskId: task.id } } };
        },
      }),
};

createInterface({ input: process.stdin })
  .on("line", (line) => {
    // Whoever tests with it sends JSON-RPC.
    const { id, method, params, result } = JSON.parse(line) as Fields;
    if (id === undefined) return;
    if (typeof method !== "string") return asked.get(String(id))?.(object(result));
    const run = METHODS[method];
    const answered =
      run === undefined
        ? Promise.reject(new Failure(-32601, "Method not found"))
        : Promise.resolve().then(() => run(object(params)));
    void answered.then(
      (done) => send({ id, result: done }),
      (error: unknown) =>
        send({ id, error: error instanceof Failure ? error.rpc : { code: -32603, message: String(error) } }),
    );
  })
  .on("close", () => process.exit());
