/** The tools of a hub for an agent loop, as a model provider takes them. */
import type { Emitter } from "../model/emitter.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Tool } from "../model/tool.ts";
import { PROVIDERS } from "../schemas/normalize.ts";
import type { Session } from "../sessions/session.ts";
import { type AgentToolsOptions, agentTools } from "./agent-tools.ts";
import type { HubEvents } from "./events.ts";
import type { ToolsOptions } from "./requests.ts";
import { toolBehind } from "./tool-behind.ts";
import type { LastingParts, Wiring } from "./wiring.ts";

interface HubToolsParts {
  /** The hub's own session. */
  readonly own: Session;
  readonly parts: LastingParts;
  readonly wiring: Wiring;
  readonly events: Emitter<HubEvents>;
  readonly call: AgentToolsOptions["call"];
}

export function hubTools(options: ToolsOptions, { own, parts, wiring, events, call }: HubToolsParts): Tool[] {
  const session = options.session ?? own;
  if (options.for !== undefined && !PROVIDERS.includes(options.for)) {
    throw new ToolcribError("invalid_arguments", `There is no provider "${options.for}".`, {
      hint: `Providers: ${PROVIDERS.join(", ")}.`,
    });
  }
  return agentTools(wiring.offered.of(session, options), {
    provider: options.for ?? "raw",
    session,
    inlineBytes: options.inlineBytes ?? wiring.config.config.limits.inlineBytes,
    onAsk: options.onAsk,
    serverName: (id) => parts.servers.get(id)?.spec.name ?? parts.ownSources.get(id)?.name ?? id,
    call,
    toolBehind: (tool, args) => toolBehind(tool, args, wiring.views.of(session).tools, parts.skills),
    onUnusable: (tool, reason) =>
      events.emit("warning", {
        server: tool.origin.source,
        message: `The tool ${tool.name} is left out: ${reason}`,
      }),
  });
}
