/** The log of `serve` and `mcp`, and what of the hub's events goes into it. */
import type { Hub } from "../../hub/hub.ts";
import { ToolcribError } from "../../model/errors.ts";
import { Log, LOG_FORMATS, LOG_LEVELS } from "../../telemetry/log.ts";
import type { Invocation } from "../command.ts";

/** Quiet by default on a terminal; a program that reads the log wants to see more. */
export function logFor({ flags, out }: Invocation): Log {
  const format = oneOf("log-format", flags.text("logFormat") ?? "pretty", LOG_FORMATS);
  const level = oneOf("log-level", flags.text("logLevel") ?? (format === "json" ? "info" : "warn"), LOG_LEVELS);
  return new Log({
    format,
    level: out.quiet ? "error" : level,
    write: (line) => void out.prompts.write(line),
    mask: (line) => out.redactor.mask(line),
  });
}

function oneOf<Value extends string>(flag: string, value: string, allowed: readonly Value[]): Value {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw new ToolcribError("invalid_arguments", `--${flag} must be one of ${allowed.join(", ")}, not "${value}".`);
}

/** @param url Where a held call can be approved, if anywhere. */
export function logHubEvents(hub: Hub, log: Log, url?: string): void {
  hub.on("server", ({ info: { id, state, lastError, toolCount } }) => {
    if (state === "failed" || state === "restarting")
      log.warn(`server ${state}`, { server: id, reason: lastError ?? "" });
    else log.info(`server ${state}`, { server: id, tools: toolCount });
  });
  hub.on("warning", ({ server, message }) => log.warn(message, { server }));
  hub.on("reload", ({ report: { added, changed, removed } }) =>
    log.info("config taken up", { added, changed, removed }),
  );
  hub.on("ask", ({ id, name, session, held }) => {
    const how = held && url !== undefined ? { approve: `toolcrib approve ${id} --hub ${url}` } : {};
    log.warn("a call waits for a yes", { tool: name, user: session.user, ...how });
  });
  hub.on("call", ({ name, outcome, durationMs, door, user }) =>
    log.debug("call", { tool: name, outcome, ms: durationMs, door, user: user ?? undefined }),
  );
  hub.on("log", ({ server, message }) => log.debug("server log", { server, level: message.level, data: message.data }));
}
