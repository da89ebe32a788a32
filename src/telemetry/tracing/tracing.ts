/**
 * Spans for calls, where the operator has set up an OpenTelemetry SDK. Nothing is loaded until then: the API keeps what is
 * registered in one global place, and a look there is all that a call pays.
 */
import type * as Otel from "@opentelemetry/api";
import { isJsonObject } from "../../model/json.ts";
import { VERSION } from "../../model/version.ts";
import { CallSpan, type TracedCall } from "./call-span.ts";

/** Shared by all versions of the API with the same first number. */
const REGISTERED = Symbol.for("opentelemetry.js.api.1");

export class Tracing {
  readonly #mask: (text: string) => string;
  #otel: typeof Otel | undefined;
  #loading: Promise<void> | undefined;

  constructor(mask: (text: string) => string) {
    this.#mask = mask;
  }

  /** Loads the API if somebody has registered an SDK. */
  async ready(): Promise<void> {
    if (isWanted()) await this.#load();
  }

  /** Undefined while nobody traces. An SDK that is registered later is noticed, from its second call on at the latest. */
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
      // A fault of the SDK is no reason for a call to fail.
      return undefined;
    }
  }

  #load(): Promise<void> {
    this.#loading ??= import("@opentelemetry/api").then(
      (otel) => {
        this.#otel = otel;
      },
      () => {
        // Not installed: then nobody traces.
      },
    );
    return this.#loading;
  }
}

function isWanted(): boolean {
  const api: unknown = Reflect.get(globalThis, REGISTERED);
  return isJsonObject(api) && api["trace"] !== undefined;
}
