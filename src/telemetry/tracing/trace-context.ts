/** Trace context in `_meta`, where MCP has it: `traceparent`, `tracestate` and `baggage`, without a prefix. */
import type { Context, PropagationAPI, TextMapGetter, TextMapSetter } from "@opentelemetry/api";
import type { JsonObject } from "../../model/json.ts";

const getter: TextMapGetter<JsonObject> = {
  keys: (meta) => Object.keys(meta),
  get(meta, key) {
    const value = meta[key];
    return typeof value === "string" ? value : undefined;
  },
};

const setter: TextMapSetter<Map<string, string>> = { set: (carrier, key, value) => void carrier.set(key, value) };

/** The context that came with a request, on top of the one that is active anyway. */
export function extracted(propagation: PropagationAPI, active: Context, meta: JsonObject | undefined): Context {
  return meta === undefined ? active : propagation.extract(active, meta, getter);
}

/** `_meta` for what goes out. What the operator's propagators say nothing about stays as it came. */
export function injected(
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
