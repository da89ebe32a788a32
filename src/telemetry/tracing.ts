/**
 * Spans and durations of calls, where an OpenTelemetry SDK is registered: by the operator, or by `otel-export.ts`. Nothing is
 * loaded until then: the API keeps what is registered in one global place, and a look there is all that a call pays.
 */
import { clientLabel, type ClientInfo } from "../model/client-info.ts";
import type * as Otel from "@opentelemetry/api";
import type { Context, PropagationAPI, TextMapGetter, TextMapSetter } from "@opentelemetry/api";
import { asToolcribError, ERROR_TABLE, type ErrorObject, type Outcome } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { RequestId, Result } from "../model/protocol.ts";
import type { SentRequest, Source, Use } from "../model/source.ts";
import { VERSION } from "../model/version.ts";

/** Shared by all versions of the API with the same first number. */
const REGISTERED = Symbol.for("opentelemetry.js.api.1");

/** Whether a program has registered one, for traces or metrics. */
export function isSdkRegistered(): boolean {
  const api: unknown = Reflect.get(globalThis, REGISTERED);
  return api !== undefined && isJsonObject(api) && (api["trace"] !== undefined || api["metrics"] !== undefined);
}

export class Tracing {
  readonly #mask: (text: string) => string;
  #otel: typeof Otel | undefined;
  #loading: Promise<void> | undefined;
  #instruments: Instruments | undefined;

  constructor(mask: (text: string) => string) {
    this.#mask = mask;
  }

  /** Loads the API if an SDK is registered. */
  async ready(): Promise<void> {
    if (isSdkRegistered()) await this.#load();
  }

  /** Undefined without an SDK. One that is registered later is noticed, from its second call on at the latest. */
  begin(call: TracedCall): CallSpan | undefined {
    if (!isSdkRegistered()) return undefined;
    if (this.#otel === undefined) {
      void this.#load();
      return undefined;
    }
    try {
      // Asked for each time: a program may replace its SDK.
      const tracer = this.#otel.trace.getTracer("toolcrib", VERSION);
      return new CallSpan(this.#otel, tracer, this.#durations(this.#otel), this.#mask, call);
    } catch {
      // A failure of the SDK must not fail the call.
      return undefined;
    }
  }

  #durations({ metrics }: typeof Otel): Instruments {
    const provider = metrics.getMeterProvider();
    if (this.#instruments?.provider === provider) return this.#instruments;
    const meter = provider.getMeter("toolcrib", VERSION);
    const histogram = (name: string, description: string): Otel.Histogram =>
      meter.createHistogram(name, {
        description,
        unit: "s",
        advice: { explicitBucketBoundaries: [...DURATION_BOUNDS] },
      });
    this.#instruments = {
      provider,
      server: histogram("mcp.server.operation.duration", "How long requests of clients took."),
      client: histogram("mcp.client.operation.duration", "How long requests to MCP servers took."),
    };
    return this.#instruments;
  }

  #load(): Promise<void> {
    this.#loading ??= import("@opentelemetry/api").then(
      (otel) => {
        this.#otel = otel;
      },
      () => {
        // Not installed: there is no tracing.
      },
    );
    return this.#loading;
  }
}

interface Instruments {
  readonly provider: Otel.MeterProvider;
  readonly server: Otel.Histogram;
  readonly client: Otel.Histogram;
}

/** In seconds, as OpenTelemetry's conventions for MCP have them. */
const DURATION_BOUNDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300] as const;

interface TracedCall {
  readonly callId: string;
  readonly session: { readonly id: string; readonly door: string };
  readonly clientInfo: ClientInfo | undefined;
  /** In public names. */
  readonly use: Use;
  /** Holds the caller's trace context, if it sent one. */
  readonly meta?: JsonObject | undefined;
  readonly requestId?: RequestId | undefined;
  readonly protocolVersion?: string | undefined;
}

/** The end of a call. */
interface TracedEnd {
  /** Null if the call got nowhere. */
  readonly server: string | null;
  readonly decision: string;
  readonly outcome: Outcome;
}

const METHODS: Readonly<Record<Use["kind"], string>> = {
  tool: "tools/call",
  resource: "resources/read",
  prompt: "prompts/get",
  completion: "completion/complete",
  subscribe: "resources/subscribe",
  unsubscribe: "resources/unsubscribe",
};

/** Doors through which nothing comes from outside the process. */
const LOCAL_DOORS = new Set(["library", "cli"]);

/** Failure of a request: the class of the error, and the code of the JSON-RPC response if that was the answer. */
interface Failure {
  readonly type: string;
  readonly rpcCode?: number | undefined;
}

/**
 * The spans of one call: one for the hub's whole part in it, and within that one for the request to a server. Names and
 * attributes follow OpenTelemetry's conventions for MCP.
 */
export class CallSpan {
  readonly #otel: typeof Otel;
  readonly #tracer: Otel.Tracer;
  readonly #durations: Instruments;
  readonly #mask: (text: string) => string;
  readonly #call: TracedCall;
  readonly #span: Otel.Span;
  readonly #context: Otel.Context;
  readonly #startedAt = performance.now();

  constructor(
    otel: typeof Otel,
    tracer: Otel.Tracer,
    durations: Instruments,
    mask: (text: string) => string,
    call: TracedCall,
  ) {
    const { callId, session, clientInfo, use, meta, requestId } = call;
    this.#otel = otel;
    this.#tracer = tracer;
    this.#durations = durations;
    this.#mask = mask;
    this.#call = call;
    const active = otel.context.active();
    const parent = extractContext(otel.propagation, active, meta);
    this.#span = tracer.startSpan(
      // The name of a tool comes when it is known to exist: callers can make up any number of names.
      methodOf(use),
      {
        kind: this.#isLocal ? otel.SpanKind.INTERNAL : otel.SpanKind.SERVER,
        attributes: {
          ...this.#targetOf(use),
          ...this.#uriOf(use),
          ...callerNetwork(call),
          "mcp.session.id": session.id,
          "toolcrib.call_id": callId,
          "toolcrib.door": session.door,
          ...(requestId === undefined ? {} : { "jsonrpc.request.id": this.#mask(String(requestId)) }),
          ...(clientInfo === undefined ? {} : { "toolcrib.client": this.#mask(clientLabel(clientInfo)) }),
        },
        links: this.#links(active, parent),
      },
      parent,
    );
    this.#context = otel.trace.setSpan(parent, this.#span);
  }

  /**
   * Runs `send` with the `_meta` that continues the trace, and a span around it if it goes to a server. `send` reports what it
   * sends.
   */
  async run(
    source: Pick<Source, "id" | "kind">,
    use: Use,
    meta: JsonObject | undefined,
    send: (meta: JsonObject | undefined, onSent?: (request: SentRequest) => void) => Promise<Result>,
  ): Promise<Result> {
    const { trace, SpanKind } = this.#otel;
    if (source.kind !== "server") return this.#within(this.#context, meta, (sent) => send(sent));
    const attributes = { ...this.#targetOf(use), "toolcrib.server": source.id };
    let span: Otel.Span;
    let inner: Otel.Context;
    try {
      const options = { kind: SpanKind.CLIENT, attributes: { ...attributes, ...this.#uriOf(use) } };
      span = this.#tracer.startSpan(spanNameOf(use), options, this.#context);
      inner = trace.setSpan(this.#context, span);
    } catch {
      return send(meta);
    }
    const startedAt = performance.now();
    let network: Otel.Attributes = {};
    let failure: Failure | undefined;
    const onSent = (request: SentRequest): void => {
      network = serverNetwork(request);
      try {
        span.setAttributes(network).setAttribute("jsonrpc.request.id", String(request.id));
      } catch {}
    };
    try {
      const result = await this.#within(inner, meta, (sent) => send(sent, onSent));
      if (result["isError"] === true) failure = { type: "tool_error" };
      return result;
    } catch (error) {
      failure = failureOf(asToolcribError(error));
      throw error;
    } finally {
      // The call has run: a fault of the SDK must not replace its result.
      try {
        this.#fail(span, failure);
        span.end();
        this.#record("client", startedAt, { ...attributes, ...network, ...failureAttributes(failure) });
      } catch {}
    }
  }

  /** Runs `send` in the context, once; without it if the SDK fails. */
  #within<T>(
    context: Otel.Context,
    meta: JsonObject | undefined,
    send: (meta: JsonObject | undefined) => Promise<T>,
  ): Promise<T> {
    let result: Promise<T> | undefined;
    try {
      const continued = injectContext(this.#otel.propagation, context, meta);
      this.#otel.context.with(context, () => {
        result = send(continued);
      });
    } catch {
      // Thrown by the SDK, because `send` is asynchronous.
    }
    return result ?? send(meta);
  }

  /** Must not throw: the call has ended. */
  end(end: TracedEnd): void {
    try {
      this.#end(end);
    } catch {
      // A fault of the SDK.
    }
  }

  #end({ server, decision, outcome }: TracedEnd): void {
    const span = this.#span;
    const { use } = this.#call;
    const name = outcome.ok ? "ok" : outcome.error.code;
    const own = { "toolcrib.decision": decision, "toolcrib.outcome": name };
    if (server !== null) span.updateName(spanNameOf(use)).setAttribute("toolcrib.server", server);
    span.setAttributes(own);
    const failure = outcome.ok ? undefined : this.#failureOf(outcome.error, outcome.result);
    this.#fail(span, failure);
    span.end();
    if (this.#isLocal) return;
    this.#record("server", this.#startedAt, {
      ...(server === null ? { "mcp.method.name": methodOf(use) } : this.#targetOf(use)),
      ...callerNetwork(this.#call),
      ...failureAttributes(failure),
      "toolcrib.outcome": name,
    });
  }

  get #isLocal(): boolean {
    return LOCAL_DOORS.has(this.#call.session.door);
  }

  #record(side: "server" | "client", startedAt: number, attributes: Otel.Attributes): void {
    this.#durations[side].record((performance.now() - startedAt) / 1000, attributes, this.#context);
  }

  /** A caller that speaks JSON-RPC gets an error with a code; the eras have their own for a resource that is not there. */
  #failureOf(error: ErrorObject, result: Result | undefined): Failure {
    const { requestId, use } = this.#call;
    if (requestId === undefined || result !== undefined) return { type: error.code };
    const answered = failureOf(error);
    if (answered.rpcCode !== undefined) return answered;
    if (error.code === "not_found" && use.kind !== "tool" && use.kind !== "prompt") return { type: error.code };
    return rpcFailure(ERROR_TABLE[error.code].rpc);
  }

  /** Without a message: servers word most of them, and a trace goes to others than the caller. */
  #fail(span: Otel.Span, failure: Failure | undefined): void {
    if (failure === undefined) return;
    span.setAttributes(failureAttributes(failure)).setStatus({ code: this.#otel.SpanStatusCode.ERROR });
  }

  #targetOf(use: Use): Otel.Attributes {
    const method = { "mcp.method.name": methodOf(use) };
    if (use.kind === "prompt") return { ...method, "gen_ai.prompt.name": this.#mask(use.name) };
    if (use.kind !== "tool") return method;
    const operation = use.task === undefined ? { "gen_ai.operation.name": "execute_tool" } : {};
    return { ...method, ...operation, "gen_ai.tool.name": this.#mask(use.name) };
  }

  /** Not for metrics: there are any number of them. */
  #uriOf(use: Use): Otel.Attributes {
    return "uri" in use ? { "mcp.resource.uri": this.#mask(use.uri) } : {};
  }

  /** Where the caller's context came in `_meta`, what carried the message, such as an HTTP request, is only linked. */
  #links(active: Otel.Context, parent: Otel.Context): Otel.Link[] {
    const { trace } = this.#otel;
    const around = trace.getSpanContext(active);
    if (around === undefined || !trace.isSpanContextValid(around)) return [];
    return around.spanId === trace.getSpanContext(parent)?.spanId ? [] : [{ context: around }];
  }
}

function methodOf(use: Use): string {
  return use.kind === "tool" && use.task !== undefined ? use.task.method : METHODS[use.kind];
}

function spanNameOf(use: Use): string {
  const method = methodOf(use);
  return use.kind === "tool" || use.kind === "prompt" ? `${method} ${use.name}` : method;
}

function failureOf({ code, details }: Pick<ErrorObject, "code" | "details">): Failure {
  const rpc = details?.["rpc"];
  return isJsonObject(rpc) && typeof rpc["code"] === "number" ? rpcFailure(rpc["code"]) : { type: code };
}

function rpcFailure(rpcCode: number): Failure {
  return { type: String(rpcCode), rpcCode };
}

function failureAttributes(failure: Failure | undefined): Otel.Attributes {
  if (failure === undefined) return {};
  const { type, rpcCode } = failure;
  return {
    "error.type": type,
    ...(rpcCode === undefined ? {} : { "rpc.response.status_code": String(rpcCode) }),
  };
}

function callerNetwork({ clientInfo, protocolVersion }: TracedCall): Otel.Attributes {
  return {
    ...networkOf(clientInfo?.transport),
    ...(protocolVersion === undefined ? {} : { "mcp.protocol.version": protocolVersion }),
  };
}

function serverNetwork({ transport, protocolVersion, url }: SentRequest): Otel.Attributes {
  // A host that is a reference cannot be parsed, and stays out.
  const parsed = url === undefined ? null : URL.parse(url);
  const port = parsed?.port === "" ? (parsed.protocol === "https:" ? 443 : 80) : Number(parsed?.port);
  return {
    ...networkOf(transport),
    "mcp.protocol.version": protocolVersion,
    ...(parsed === null ? {} : { "server.address": parsed.hostname, "server.port": port }),
  };
}

function networkOf(transport: string | undefined): Otel.Attributes {
  if (transport === "stdio") return { "network.transport": "pipe" };
  return transport === undefined ? {} : { "network.transport": "tcp", "network.protocol.name": "http" };
}

/** Trace context in `_meta`, where MCP has it: `traceparent`, `tracestate` and `baggage`, without a prefix. */
const getter: TextMapGetter<JsonObject> = {
  keys: (meta) => Object.keys(meta),
  get(meta, key) {
    const value = meta[key];
    return typeof value === "string" ? value : undefined;
  },
};

const setter: TextMapSetter<Map<string, string>> = { set: (carrier, key, value) => void carrier.set(key, value) };

/** The context that came with a request, on top of the one that is active anyway. */
function extractContext(propagation: PropagationAPI, active: Context, meta: JsonObject | undefined): Context {
  return meta === undefined ? active : propagation.extract(active, meta, getter);
}

/** `_meta` for what goes out. What the operator's propagators say nothing about stays as it came. */
function injectContext(
  propagation: PropagationAPI,
  context: Context,
  meta: JsonObject | undefined,
): JsonObject | undefined {
  const carrier = new Map<string, string>();
  propagation.inject(context, carrier, setter);
  if (carrier.size === 0) return meta;
  const kept = Object.entries(meta ?? {}).filter(
    // The state belongs to the parent that came with it.
    ([key]) => !(key === "tracestate" && carrier.has("traceparent")),
  );
  return Object.fromEntries([...kept, ...carrier]);
}
