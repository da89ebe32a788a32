/** The smallest OpenTelemetry SDK that keeps spans: a provider, W3C propagation, contexts that follow promises. */
import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import {
  type Attributes,
  type Context,
  context,
  type ContextManager,
  defaultTextMapGetter,
  type Link,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  type SpanStatus,
  SpanStatusCode,
  type TextMapGetter,
  type TextMapPropagator,
  type TextMapSetter,
  trace,
  TraceFlags,
} from "@opentelemetry/api";

export class RecordedSpan implements Span {
  name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  readonly links: readonly Link[];
  readonly parent: SpanContext | undefined;
  status: SpanStatus = { code: SpanStatusCode.UNSET };
  ended = false;
  readonly #context: SpanContext;

  constructor(name: string, { kind = SpanKind.INTERNAL, attributes = {}, links = [] }: SpanOptions, within: Context) {
    this.name = name;
    this.kind = kind;
    this.attributes = { ...attributes };
    this.links = links;
    this.parent = trace.getSpanContext(within);
    this.#context = {
      traceId: this.parent?.traceId ?? randomBytes(16).toString("hex"),
      spanId: randomBytes(8).toString("hex"),
      traceFlags: TraceFlags.SAMPLED,
      ...(this.parent?.traceState === undefined ? {} : { traceState: this.parent.traceState }),
    };
  }

  spanContext(): SpanContext {
    return this.#context;
  }

  setAttribute(key: string, value: Attributes[string]): this {
    this.attributes[key] = value;
    return this;
  }

  setAttributes(attributes: Attributes): this {
    Object.assign(this.attributes, attributes);
    return this;
  }

  setStatus(status: SpanStatus): this {
    this.status = status;
    return this;
  }

  updateName(name: string): this {
    this.name = name;
    return this;
  }

  end(): void {
    this.ended = true;
  }

  addEvent(): this {
    return this;
  }

  addLink(): this {
    return this;
  }

  addLinks(): this {
    return this;
  }

  isRecording(): boolean {
    return !this.ended;
  }

  recordException(): void {}
}

const w3c: TextMapPropagator = {
  fields: () => ["traceparent"],
  inject(within: Context, carrier: unknown, setter: TextMapSetter) {
    const span = trace.getSpanContext(within);
    if (span === undefined) return;
    setter.set(carrier, "traceparent", `00-${span.traceId}-${span.spanId}-0${span.traceFlags}`);
  },
  extract(within: Context, carrier: unknown, getter: TextMapGetter = defaultTextMapGetter) {
    const given = getter.get(carrier, "traceparent");
    const [, traceId, spanId] = /^00-([\da-f]{32})-([\da-f]{16})-0[01]$/.exec(String(given)) ?? [];
    if (traceId === undefined || spanId === undefined) return within;
    return trace.setSpanContext(within, { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true });
  },
};

function contextManager(): ContextManager {
  const storage = new AsyncLocalStorage<Context>();
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (within, run, self, ...args) => storage.run(within, () => run.call(self, ...args)),
    bind: (_within, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  return manager;
}

/** Registers it for the whole process; `stop` takes it back. */
export function recordTraces(): { readonly spans: RecordedSpan[]; stop(): void } {
  const spans: RecordedSpan[] = [];
  const startSpan = (name: string, options: SpanOptions = {}, within = context.active()): RecordedSpan => {
    const span = new RecordedSpan(name, options, within);
    spans.push(span);
    return span;
  };
  const startActiveSpan = (): never => {
    throw new Error("not used here");
  };
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan, startActiveSpan }) });
  propagation.setGlobalPropagator(w3c);
  context.setGlobalContextManager(contextManager());
  return {
    spans,
    stop() {
      trace.disable();
      propagation.disable();
      context.disable();
    },
  };
}
