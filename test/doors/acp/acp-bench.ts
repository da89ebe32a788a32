/** The ACP door with the SDK's own client on the other end, over streams in memory, and a model that says what a test wants. */
import { PassThrough, Readable, Writable } from "node:stream";
import {
  client,
  type ClientConnection,
  type ClientContext,
  type InitializeRequest,
  type InitializeResponse,
  McpOverAcpProvider,
  methods,
  ndJsonStream,
  type NewSessionResponse,
  type PromptResponse,
  type RequestPermissionRequest,
  type SessionUpdate,
} from "@agentclientprotocol/sdk/unstable";
import { onTestFinished } from "vitest";
import type { ChatModel, ModelStep, StepPart } from "../../../src/agent/model/chat-model.ts";
import { type AcpDoorOptions, serveAcp } from "../../../src/doors/acp/serve-acp.ts";
import { createHub, type HubOptions } from "../../../src/hub/create/create-hub.ts";
import type { Hub } from "../../../src/hub/hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import type { JsonObject } from "../../../src/model/json.ts";
import type { Tool } from "../../../src/model/tool.ts";
import { type Scenario, type ScriptedModel, startScriptedModel } from "../../../src/testing/index.ts";
import { ToolRegistry } from "../../../src/tools/tool-registry.ts";

type Turn = readonly StepPart[] | ((step: ModelStep) => AsyncIterable<StepPart> | Iterable<StepPart>);

/** Says one turn after the other; then it only says "done". */
export class TestModel implements ChatModel {
  readonly id: string;
  readonly provider = "anthropic";
  readonly images: boolean;
  readonly steps: ModelStep[] = [];
  readonly #turns: Turn[];

  constructor(turns: readonly Turn[] = [], { id = "test/one", images = true } = {}) {
    this.#turns = [...turns];
    this.id = id;
    this.images = images;
  }

  will(...turns: Turn[]): void {
    this.#turns.push(...turns);
  }

  /** What it was told of tools in its last step. */
  get tools(): string[] {
    return (this.steps.at(-1)?.tools ?? []).map(({ name }) => name);
  }

  async *step(step: ModelStep): AsyncIterable<StepPart> {
    this.steps.push({ ...step, messages: [...step.messages] });
    const turn = this.#turns.shift() ?? says("done");
    yield* typeof turn === "function" ? turn(step) : turn;
  }
}

export const says = (text: string): StepPart[] => [
  { type: "text", text },
  { type: "usage", input: 10, output: 2 },
  { type: "finish", reason: "stop" },
];

export const calls = (...wanted: readonly (readonly [name: string, input?: JsonObject])[]): StepPart[] => [
  ...wanted.map(([name, input = {}], at) => ({ type: "call" as const, id: `call-${name}-${at}`, name, input })),
  { type: "usage", input: 10, output: 2 },
  { type: "finish", reason: "calls" },
];

/** Streams something and then nothing more until it is aborted. */
export const hangs = (text: string): Turn =>
  async function* ({ signal }) {
    yield { type: "text", text };
    await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };

export function tool(name: string, options: Partial<Tool> = {}): Tool {
  return {
    name,
    description: `The tool ${name}`,
    parameters: { type: "object" },
    execute: async (_id, params) => ({ content: [{ type: "text", text: `${name} ${JSON.stringify(params)}` }] }),
    ...options,
  };
}

export const readOnly = { annotations: { readOnlyHint: true } };

type Permit = (request: RequestPermissionRequest) => string | Promise<string>;

export interface ClientOptions {
  readonly capabilities?: InitializeRequest["clientCapabilities"];
  /** The option that is chosen; `cancelled` for none. */
  readonly permit?: Permit;
  readonly files?: Map<string, string>;
  readonly elicit?: (params: JsonObject) => JsonObject;
}

export class TestClient {
  readonly updates: { sessionId: string; update: SessionUpdate }[] = [];
  readonly permissions: RequestPermissionRequest[] = [];
  readonly mcp = new McpOverAcpProvider();
  readonly connection: ClientConnection;
  readonly served: Promise<void>;
  readonly #options: ClientOptions;
  readonly #input = new PassThrough();
  readonly #stop = new AbortController();

  constructor(
    door: Omit<AcpDoorOptions, "input" | "output" | "env" | "log"> & Partial<AcpDoorOptions>,
    options: ClientOptions,
  ) {
    this.#options = options;
    const output = new PassThrough();
    const signal = this.#stop.signal;
    this.served = serveAcp({ env: {}, log: () => {}, signal, ...door, input: this.#input, output });
    const app = client()
      .onRequest(methods.client.session.requestPermission, async ({ params }) => {
        this.permissions.push(params);
        const optionId = (await options.permit?.(params)) ?? "allow_once";
        return { outcome: optionId === "cancelled" ? { outcome: "cancelled" } : { outcome: "selected", optionId } };
      })
      .onRequest(methods.client.fs.readTextFile, ({ params }) => ({ content: options.files?.get(params.path) ?? "" }))
      .onRequest(methods.client.fs.writeTextFile, ({ params }) => void options.files?.set(params.path, params.content))
      .onRequest(
        methods.client.elicitation.create,
        (params) => params,
        ({ params }) => options.elicit?.(params as JsonObject),
      )
      .onRequest(methods.client.mcp.message, this.mcp.handleRequest)
      .onNotification(methods.client.session.update, ({ params }) => void this.updates.push(params));
    this.connection = app.connect(ndJsonStream(Writable.toWeb(this.#input), Readable.toWeb(output)));
  }

  get agent(): ClientContext {
    return this.connection.agent;
  }

  initialize(protocolVersion = 1): Promise<InitializeResponse> {
    const { capabilities = {} } = this.#options;
    return this.agent.request(methods.agent.initialize, { protocolVersion, clientCapabilities: capabilities });
  }

  /** Without the SDK's types, for params that are not what they should be. */
  raw<Answer = JsonObject>(method: string, params: unknown, cancellationSignal?: AbortSignal): Promise<Answer> {
    return this.agent.request<Answer>(method, params, cancellationSignal === undefined ? {} : { cancellationSignal });
  }

  async newSession(cwd: string, mcpServers: readonly unknown[] = []): Promise<NewSessionResponse> {
    return this.raw<NewSessionResponse>("session/new", { cwd, mcpServers });
  }

  prompt(sessionId: string, text: string): Promise<PromptResponse> {
    return this.agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  }

  cancel(sessionId: string): Promise<void> {
    return this.agent.notify(methods.agent.session.cancel, { sessionId });
  }

  of<Kind extends SessionUpdate["sessionUpdate"]>(
    kind: Kind,
    sessionId?: string,
  ): Extract<SessionUpdate, { sessionUpdate: Kind }>[] {
    return this.updates.flatMap((told) =>
      (sessionId === undefined || told.sessionId === sessionId) && isKind(told.update, kind) ? [told.update] : [],
    );
  }

  /** What the agent said, all pieces together. */
  text(sessionId?: string): string {
    return this.of("agent_message_chunk", sessionId)
      .map(({ content }) => (content.type === "text" ? content.text : `[${content.type}]`))
      .join("");
  }

  /** The end of the client's output, as when it is gone. */
  async end(): Promise<void> {
    this.#input.end();
    await this.served;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.served;
    this.connection.close();
  }
}

function isKind<Kind extends SessionUpdate["sessionUpdate"]>(
  update: SessionUpdate,
  kind: Kind,
): update is Extract<SessionUpdate, { sessionUpdate: Kind }> {
  return update.sessionUpdate === kind;
}

export interface Bench {
  readonly hub: Hub;
  readonly model: TestModel;
  readonly client: TestClient;
  /** Another connection to the same hub. */
  another(options?: ClientOptions): Promise<TestClient>;
}

export interface BenchOptions extends ClientOptions {
  /** A text is a file. */
  readonly config?: ConfigInput | string;
  readonly hubOptions?: HubOptions;
  readonly tools?: readonly Tool[];
  readonly door?: Partial<AcpDoorOptions>;
}

/** Servers that start on a busy machine are waited for, unless the test is about the wait. */
function withPatience(config: ConfigInput | string): ConfigInput | string {
  return typeof config === "string" ? config : { ...config, limits: { listWaitMs: 30_000, ...config.limits } };
}

export async function acpOn({
  config = {},
  hubOptions,
  tools = [],
  door,
  ...options
}: BenchOptions = {}): Promise<Bench> {
  const registry = new ToolRegistry();
  for (const each of tools) registry.register(each);
  const hub = await createHub(withPatience(config), { registry, ...hubOptions });
  onTestFinished(() => hub.close());
  const model = new TestModel();
  const another = async (other: ClientOptions = options): Promise<TestClient> => {
    const connected = new TestClient({ hub, model, ...door }, other);
    onTestFinished(() => connected.close());
    await connected.initialize();
    return connected;
  };
  return { hub, model, client: await another(), another };
}

/** A model over HTTP that says what a test wants, and how the door is told of it. */
export async function scripted(scenario: Scenario): Promise<{ script: ScriptedModel; door: Partial<AcpDoorOptions> }> {
  const script = await startScriptedModel(scenario);
  onTestFinished(() => script.close());
  return { script, door: { model: { baseUrl: `${script.url}/v1`, model: "scripted", images: true } } };
}
