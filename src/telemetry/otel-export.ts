/**
 * Traces and metrics to an OTLP endpoint, for a hub that is a program of its own. The OpenTelemetry SDK is an optional
 * package, which reads its `OTEL_*` variables itself. Without an endpoint nothing is loaded.
 */
import type { DiagLogger } from "@opentelemetry/api";
import { endsWithin } from "../base/async.ts";
import type { Clock } from "../base/clock.ts";
import { loadOptional } from "../base/optional-package.ts";
import { asToolcribError } from "../model/errors.ts";
import { isJsonObject } from "../model/json.ts";
import { isSdkRegistered } from "./tracing.ts";

const SDK = "@opentelemetry/sdk-node";
/** A hub that ends waits this long for what was not sent yet. */
const FLUSH_MS = 3000;
/** Between two warnings about exports that fail. */
const WARNING_MS = 600_000;

interface OtelExportOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
  readonly mask: (text: string) => string;
  /** Is told the values of headers, which usually are credentials. */
  readonly addSecret: (value: string) => void;
}

export interface OtelExport {
  /** Sends what is left, for a few seconds at most, and unregisters the SDK. Never rejects. */
  close(): Promise<void>;
}

/** Undefined if no endpoint is set, the program has registered an SDK itself, or this one cannot be started. */
export async function startOtelExport(options: OtelExportOptions): Promise<OtelExport | undefined> {
  const { env, warn } = options;
  if (!hasEndpoint(env, "TRACES") && !hasEndpoint(env, "METRICS")) return undefined;
  if (env["OTEL_SDK_DISABLED"]?.trim().toLowerCase() === "true" || isSdkRegistered()) return undefined;
  for (const value of headerValues(env)) options.addSecret(value);
  try {
    const sdk = await loadOptional(SDK, () => import("@opentelemetry/sdk-node"));
    if (sdk !== undefined) return await start(sdk.NodeSDK, options);
    warn(
      `Traces and metrics are not exported: OTEL_EXPORTER_OTLP_ENDPOINT is set, and the package ${SDK} is not installed. ` +
        `Run \`npm install ${SDK}\` beside Toolcrib, with -g if Toolcrib is installed so.`,
    );
  } catch (error) {
    warn(`Traces and metrics are not exported: ${asToolcribError(error).message}`);
  }
  return undefined;
}

type NodeSdk = typeof import("@opentelemetry/sdk-node").NodeSDK;

async function start(Sdk: NodeSdk, { env, clock, warn, mask }: OtelExportOptions): Promise<OtelExport> {
  const otel = await import("@opentelemetry/api");
  const level = env["OTEL_LOG_LEVEL"]?.trim().toUpperCase() ?? "";
  const levels: Readonly<Record<string, unknown>> = otel.DiagLogLevel;
  const logLevel = levels[level];
  const logger =
    typeof logLevel === "number" ? stderrLogger(mask) : failureLogger(clock, (reason) => warn(failureText(reason)));
  otel.diag.setLogger(logger, {
    logLevel: typeof logLevel === "number" ? logLevel : otel.DiagLogLevel.ERROR,
    suppressOverrideMessage: true,
  });
  const sdk = withVariables(defaultVariables(env), () => {
    const made = new Sdk();
    made.start();
    return made;
  });
  return {
    async close() {
      const sent = sdk.shutdown().catch((error: unknown) => logger.error(asToolcribError(error).message));
      if (!(await endsWithin(sent, { ms: FLUSH_MS, clock }))) {
        warn("The last traces and metrics may be lost: the OTLP endpoint did not take them in time.");
      }
      for (const api of [otel.trace, otel.metrics, otel.propagation, otel.context, otel.diag]) api.disable();
    },
  };
}

function hasEndpoint(env: NodeJS.ProcessEnv, signal: "TRACES" | "METRICS"): boolean {
  return ["OTEL_EXPORTER_OTLP_ENDPOINT", `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`].some((name) => isSet(env, name));
}

/** An empty variable counts as one that is not set, by OpenTelemetry's own rule. */
function isSet(env: NodeJS.ProcessEnv, name: string): boolean {
  return (env[name] ?? "").trim() !== "";
}

/** Defaults of the SDK that do not suit a hub; a variable that the operator sets goes before them. */
function defaultVariables(env: NodeJS.ProcessEnv): Readonly<Record<string, string | undefined>> {
  const isNamed = /(?:^|,)\s*service\.name\s*=/.test(env["OTEL_RESOURCE_ATTRIBUTES"] ?? "");
  const defaults: Readonly<Record<string, string | undefined>> = {
    OTEL_SERVICE_NAME: isNamed ? undefined : "toolcrib",
    // Without `process`: command lines have arguments and tokens in them.
    OTEL_NODE_RESOURCE_DETECTORS: "env,host,os,serviceinstance",
    // Otherwise a signal without an endpoint goes to a collector on this machine, which may not be there.
    OTEL_TRACES_EXPORTER: hasEndpoint(env, "TRACES") ? undefined : "none",
    OTEL_METRICS_EXPORTER: hasEndpoint(env, "METRICS") ? undefined : "none",
    OTEL_LOGS_EXPORTER: "none",
  };
  return {
    ...Object.fromEntries(Object.entries(defaults).filter(([name]) => !isSet(env, name))),
    // It makes the SDK write to stdout, where a client over stdio expects the protocol.
    OTEL_LOG_LEVEL: undefined,
  };
}

/** Runs it with these variables of the process, for code that reads them from nowhere else. */
function withVariables<Value>(variables: Readonly<Record<string, string | undefined>>, run: () => Value): Value {
  const set = (values: Readonly<Record<string, string | undefined>>): void => {
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
  const before = Object.fromEntries(Object.keys(variables).map((name) => [name, process.env[name]]));
  set(variables);
  try {
    return run();
  } finally {
    set(before);
  }
}

function headerValues(env: NodeJS.ProcessEnv): string[] {
  return ["", "TRACES_", "METRICS_"].flatMap((signal) =>
    (env[`OTEL_EXPORTER_OTLP_${signal}HEADERS`] ?? "").split(",").flatMap((pair) => {
      const at = pair.indexOf("=");
      const value = at === -1 ? "" : pair.slice(at + 1).trim();
      return value === "" ? [] : [value, unescaped(value)];
    }),
  );
}

function unescaped(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/** For who looks for a fault and has set `OTEL_LOG_LEVEL`. */
function stderrLogger(mask: (text: string) => string): DiagLogger {
  const write = (...parts: readonly unknown[]): void =>
    void process.stderr.write(`opentelemetry: ${mask(parts.map(String).join(" "))}\n`);
  return { error: write, warn: write, info: write, debug: write, verbose: write };
}

/** Says that an export failed, and not again with each one that follows. */
function failureLogger(clock: Clock, report: (reason: string) => void): DiagLogger {
  let next = Number.NEGATIVE_INFINITY;
  const ignore = (): void => {};
  const error = (...parts: readonly unknown[]): void => {
    if (clock.now() < next) return;
    next = clock.now() + WARNING_MS;
    report(reasonOf(parts.map(String).join(" ")));
  };
  return { error, warn: ignore, info: ignore, debug: ignore, verbose: ignore };
}

/** The SDK writes exceptions as JSON, with their stack. */
function reasonOf(text: string): string {
  const start = text.indexOf("{");
  try {
    const value: unknown = start === -1 ? undefined : JSON.parse(text.slice(start));
    if (isJsonObject(value) && typeof value["message"] === "string") return value["message"] || String(value["code"]);
  } catch {
    // Plain words.
  }
  return text.split("\n", 1)[0] ?? "";
}

function failureText(reason: string): string {
  return `Traces or metrics could not be exported: ${reason.slice(0, 300)}. OTEL_LOG_LEVEL=debug shows more on stderr.`;
}
