/** The log of `serve`, `mcp` and `acp`, and the hub events that it records. */
import { renderDiagnostic } from "../../config/config-document.ts";
import type { Hub } from "../../hub/hub.ts";
import { clientLabel } from "../../model/client-info.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { Diagnostic } from "../../model/loaded-config.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { CallRecord } from "../../telemetry/call-record.ts";
import { Log, LOG_FORMATS, LOG_LEVELS } from "../../telemetry/log.ts";
import type { Invocation } from "../command.ts";
import type { HubEvents } from "../../hub/hub-events.ts";

/**
 * The default level is higher for text, because programs that read JSON want more detail.
 *
 * @param write Writes a line; to stderr by default.
 */
export function logFor({ flags, out }: Invocation, write?: (line: string) => void): Log {
  const format = oneOf("log-format", flags.text("logFormat") ?? "pretty", LOG_FORMATS);
  const level = oneOf("log-level", flags.text("logLevel") ?? (format === "json" ? "info" : "warn"), LOG_LEVELS);
  return new Log({
    format,
    level: out.quiet ? "error" : level,
    write: write ?? ((line) => void out.prompts.write(line)),
    mask: (line) => out.redactor.mask(line),
  });
}

function oneOf<Value extends string>(flag: string, value: string, allowed: readonly Value[]): Value {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw new ToolcribError("invalid_arguments", `--${flag} must be one of ${allowed.join(", ")}, not "${value}".`);
}

export function logServer(log: Log, info: ServerInfo): void {
  const { id, state, lastError, problem, progress, toolCount, restart, attempts } = info;
  const reason = lastError ?? "";
  if (state === "restarting") {
    const { attempt, delayMs } = restart ?? {};
    log.warn("server restarting", { server: id, attempt, delayMs, problem, reason });
  } else if (state === "failed") {
    const end = attempts === undefined ? "" : `, gave up after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}`;
    log.warn(`server failed${end}`, { server: id, attempts, problem, reason });
  } else if (state === "disabled") log.info("server disabled, skipped", { server: id });
  else if (progress !== undefined) log.info(`server ${state}`, { server: id, progress });
  else log.info(`server ${state}`, { server: id, tools: toolCount });
}

/** Includes warnings from the creation of the hub. */
export function logWarnings(hub: Hub, log: Log): void {
  const tell = ({ server, message }: HubEvents["warning"]): void => log.warn(message, { server });
  hub.warnings().forEach(tell);
  hub.on("warning", tell);
}

/** The servers that are there already, and one line about all once they have settled. */
export async function logStart(hub: Hub, log: Log): Promise<void> {
  for (const info of hub.servers.list())
    if (["ready", "failed", "disabled", "restarting"].includes(info.state)) logServer(log, info);
  await hub.servers.settled();
  const { message, missing } = startSummary(hub);
  log.info(message, missing.length === 0 ? {} : { missing });
}

export function startSummary(hub: Hub): { readonly message: string; readonly missing: readonly string[] } {
  const wanted = hub.servers.list().filter(({ state }) => state !== "disabled" && state !== "closed");
  const missing = wanted.filter(({ status, sleeping }) => status !== "connected" && sleeping !== true);
  const message = `${wanted.length - missing.length} of ${wanted.length} servers ready`;
  return { message, missing: missing.map(({ id }) => id) };
}

/** @param urlOf The hub's URL, once calls can be approved there. */
export function logHubEvents(hub: Hub, log: Log, urlOf: () => string | undefined = () => undefined): void {
  hub.on("server", ({ info }) => logServer(log, info));
  hub.on("session-warning", ({ session, server, message }) => log.warn(message, { session, server }));
  const keyOf = ({ code, path }: Diagnostic): string => `${code} ${path}`;
  let known = new Set(hub.config.warnings.map(keyOf));
  hub.on("reload", ({ report: { added, changed, removed } }) => {
    log.info("config applied", { added, changed, removed });
    const { warnings } = hub.config;
    for (const warning of warnings) if (!known.has(keyOf(warning))) log.warn(renderDiagnostic(warning));
    known = new Set(warnings.map(keyOf));
  });
  hub.on("ask", ({ id, callId, name, session, held }) => {
    const url = urlOf();
    const how = held && url !== undefined ? { approve: `toolcrib approve ${id} --hub ${url}` } : {};
    log.warn("a call needs approval", {
      callId,
      approval: id,
      tool: name,
      user: session.user,
      client: session.client && clientLabel(session.client),
      ...how,
    });
  });
  hub.on("answer", ({ request: { id, callId, name }, answer }) =>
    log.info("an approval was answered", { callId, approval: id, tool: name, answer }),
  );
  const logsSuccess = log.isEnabled("debug");
  hub.on("call", (record) => {
    if (logsSuccess || record.outcome !== "ok") logCall(log, record);
  });
  hub.on("suspicious", ({ callId, server, tool, kinds, places, score, forgedMarkers, blocked }) =>
    log.warn("suspicious content in a result", { callId, server, tool, kinds, places, score, forgedMarkers, blocked }),
  );
  if (!log.isEnabled("debug")) return;
  hub.on("log", async ({ server, message, callId }) => {
    const { level: severity } = message;
    const data = await hub.internals.loggedData(server, message).catch(() => undefined);
    log.debug("server log", { callId, server, severity, data });
  });
}

/** Successful calls at debug level, failures at info, and internal errors as errors. */
function logCall(log: Log, { callId, name, origin, outcome, durationMs, door, user, client }: CallRecord): void {
  const fields = {
    callId,
    tool: name,
    server: origin?.source,
    outcome,
    durationMs,
    door,
    user: user ?? undefined,
    client: client && clientLabel(client),
  };
  if (outcome === "ok") log.debug("call", fields);
  else if (outcome === "internal") log.error("call failed", fields);
  else log.info(outcome === "denied" || outcome === "blocked" ? "call refused" : "call failed", fields);
}
