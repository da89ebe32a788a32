/**
 * Spans for calls, where the operator has set up an OpenTelemetry SDK. Nothing is loaded until then: the API keeps what is
 * registered in one global place, and a look there is all that a call pays.
 */
import { clientLabel, type ClientName } from "../model/client-info.ts";
import type * as Otel from "@opentelemetry/api";
import type { Context, PropagationAPI, TextMapGetter, TextMapSetter } from "@opentelemetry/api";
import { asToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Result } from "../model/protocol.ts";
import type { Source, Use } from "../model/source.ts";
import { VERSION } from "../model/version.ts";

/** Shared by all versions of the API with the same first number. */
const REGISTERED = Symbol.for("opentelemetry.js.api.1");

export class Tracing {
  readonly #mask: (text: string) => string;
  #otel: typeof Otel | undefined;
  #loading: Promise<void> | undefined;

  constructor(mask: (text: string) => string) {
    this.#mask = mask;
  }

  /** Loads the API if an SDK is registered. */
  async ready(): Promise<void> {
    if (isWanted()) await this.#load();
  }

  /** Undefined without an SDK. One that is registered later is noticed, from its second call on at the latest. */
  begin(call: () => TracedCall): CallSpan | undefined {
    if (!isWanted()) return undefined;
    if (this.#otel === undefined) {
      void this.#load();
      return undefined;
    }
    try {
      // Asked for each time: a program may replace its SDK.
      const tracer = this.#otel.trace.getTracer("toolcrib", VERSION);
      return new CallSpan(this.#otel, tracer, this.#mask, call());
    } catch {
      // A failure of the SDK must not fail the call.
      return undefined;
    }
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

function isWanted(): boolean {
  const api: unknown = Reflect.get(globalThis, REGISTERED);
  return api !== undefined && isJsonObject(api) && api["trace"] !== undefined;
}

interface TracedCall {
  readonly callId: string;
  readonly session: string;
  readonly door: string;
  readonly client: ClientName | undefined;
  /** In public names. */
  readonly use: Use;
  /** Holds the caller's trace context, if it sent one. */
  readonly meta: JsonObject | undefined;
}

/** The end of a call. */
interface TracedEnd {
  /** Null if the call got nowhere. */
  readonly server: string | null;
  readonly decision: string;
  readonly outcome: string;
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

/**
 * The spans of one call: one for the hub's whole part in it, and within that one for the request to a server. Names and
 * attributes follow OpenTelemetry's conventions for MCP.
 */
export class CallSpan {
  readonly #otel: typeof Otel;
  readonly #tracer: Otel.Tracer;
  readonly #mask: (text: string) => string;
  readonly #use: Use;
  readonly #span: Otel.Span;
  readonly #context: Otel.Context;

  constructor(otel: typeof Otel, tracer: Otel.Tracer, mask: (text: string) => string, call: TracedCall) {
    const { callId, session, door, client, use, meta } = call;
    this.#otel = otel;
    this.#tracer = tracer;
    this.#mask = mask;
    this.#use = use;
    const active = otel.context.active();
    const parent = extractContext(otel.propagation, active, meta);
    this.#span = tracer.startSpan(
      // The name of a tool comes when it is known to exist: callers can make up any number of names.
      METHODS[use.kind],
      {
        kind: LOCAL_DOORS.has(door) ? otel.SpanKind.INTERNAL : otel.SpanKind.SERVER,
        attributes: {
          ...this.#attributes(use),
          "mcp.session.id": session,
          "toolcrib.call_id": callId,
          "toolcrib.door": door,
          ...(client === undefined ? {} : { "toolcrib.client": this.#mask(clientLabel(client)) }),
        },
        links: this.#links(active, parent),
      },
      parent,
    );
    this.#context = otel.trace.setSpan(parent, this.#span);
  }

  /** Runs `send` with the `_meta` that continues the trace, and a span around it if it goes to a server. */
  async run(
    source: Pick<Source, "id" | "kind">,
    use: Use,
    meta: JsonObject | undefined,
    send: (meta: JsonObject | undefined) => Promise<Result>,
  ): Promise<Result> {
    const { context, propagation, trace, SpanKind } = this.#otel;
    if (source.kind !== "server") {
      return context.with(this.#context, () => send(injectContext(propagation, this.#context, meta)));
    }
    const attributes = { ...this.#attributes(use), "toolcrib.server": source.id };
    const span = this.#tracer.startSpan(spanNameOf(use), { kind: SpanKind.CLIENT, attributes }, this.#context);
    const inner = trace.setSpan(this.#context, span);
    try {
      const result = await context.with(inner, () => send(injectContext(propagation, inner, meta)));
      if (result["isError"] === true) this.#fail(span, "tool_error");
      return result;
    } catch (error) {
      this.#fail(span, asToolcribError(error).code);
      throw error;
    } finally {
      span.end();
    }
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
    if (server !== null) span.updateName(spanNameOf(this.#use)).setAttribute("toolcrib.server", server);
    span.setAttributes({ "toolcrib.decision": decision, "toolcrib.outcome": outcome });
    if (outcome !== "ok") this.#fail(span, outcome);
    span.end();
  }

  /** Without a message: servers word most of them, and a trace goes to others than the caller. */
  #fail(span: Otel.Span, code: string): void {
    span.setAttribute("error.type", code).setStatus({ code: this.#otel.SpanStatusCode.ERROR });
  }

  #attributes(use: Use): Otel.Attributes {
    const method = { "mcp.method.name": METHODS[use.kind] };
    switch (use.kind) {
      case "tool":
        return { ...method, "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": this.#mask(use.name) };
      case "prompt":
        return { ...method, "gen_ai.prompt.name": this.#mask(use.name) };
      case "resource":
      case "subscribe":
      case "unsubscribe":
        return { ...method, "mcp.resource.uri": this.#mask(use.uri) };
      case "completion":
        return method;
    }
  }

  /** Where the caller's context came in `_meta`, what carried the message, such as an HTTP request, is only linked. */
  #links(active: Otel.Context, parent: Otel.Context): Otel.Link[] {
    const { trace } = this.#otel;
    const around = trace.getSpanContext(active);
    if (around === undefined || !trace.isSpanContextValid(around)) return [];
    return around.spanId === trace.getSpanContext(parent)?.spanId ? [] : [{ context: around }];
  }
}

function spanNameOf(use: Use): string {
  const method = METHODS[use.kind];
  return use.kind === "tool" || use.kind === "prompt" ? `${method} ${use.name}` : method;
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
