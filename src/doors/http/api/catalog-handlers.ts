/** Operations on tools and pins. A tool call goes through the hub like any other. */
import { nearMatches } from "../../../base/near-matches.ts";
import { describeMisfit, hidingLayerOf, misfitOf } from "../../../catalog/overrides.ts";
import type { Hub } from "../../../hub/hub.ts";
import type { Quarantined } from "../../../catalog/quarantine.ts";
import type { ToolInfo } from "../../../contract/catalog-schemas.ts";
import type { CheckedInput } from "../../../contract/operations.ts";
import { placeOf } from "../../../hub/call/config-policy.ts";
import type { View } from "../../../hub/view/view.ts";
import type { ToolCapability } from "../../../model/capability.ts";
import { type Outcome, ToolcribError } from "../../../model/errors.ts";
import { isJsonObject } from "../../../model/json.ts";
import type { Result } from "../../../model/protocol.ts";
import type { Session } from "../../../sessions/session.ts";
import { missingScope } from "../http-access.ts";
import {
  containsText,
  type DeepReadonly,
  type Handler,
  handlersOf,
  type OperationContext,
  pageOf,
} from "./operation-handler.ts";
import { asRole, readDocument } from "./settings-handlers.ts";
import { originFields, visibleServer } from "./visibility.ts";

const callTool: Handler<"callTool"> = async (input, context, { hub, questions }) => {
  const { session, signal, onProgress, clientInfo } = context;
  const { toolName, serverId, args, timeoutMs } = input;
  const name = serverId === undefined ? toolName : await publicName(hub, session, serverId, toolName);
  const client = input.questions ? questions.client(context, name) : undefined;
  const call = { session, name, arguments: args, onProgress, clientInfo, client };
  if (timeoutMs === undefined) return resultOrThrow(await hub.call({ ...call, signal }));
  const tooLate = new AbortController();
  const timer = setTimeout(() => tooLate.abort(callTimeout(name, timeoutMs)), timeoutMs);
  try {
    const either = AbortSignal.any([signal, tooLate.signal]);
    return resultOrThrow(await hub.call({ ...call, signal: either }));
  } finally {
    clearTimeout(timer);
  }
};

function callTimeout(name: string, timeoutMs: number): ToolcribError {
  const hint = "A larger timeoutMs gives it more time.";
  return new ToolcribError("timeout", `${name} gave no result within ${timeoutMs} ms.`, { hint });
}

/** A tool's own error is a result. Any other failure is thrown, with the call id of the audit log. */
export function resultOrThrow<Returned extends Result>(outcome: Outcome<Returned>): Returned {
  if (outcome.ok) return outcome.result;
  const { code, message, hint, details } = outcome.error;
  if (code === "tool_error" && outcome.result !== undefined) return { ...outcome.result, isError: true };
  throw new ToolcribError(code, message, { hint, details: { ...details, callId: outcome.callId } });
}

/** The public name of a tool that the caller sees, by the server's own name or the public one. */
async function publicName(hub: Hub, session: Session, serverId: string, toolName: string): Promise<string> {
  const ofServer = (): { name: string; own: string }[] =>
    hub
      .view(session)
      .tools.flatMap(({ name, origin }) => (origin.source === serverId ? { name, own: origin.name } : []));
  const find = (): string | undefined => {
    const tools = ofServer();
    return (tools.find(({ own }) => own === toolName) ?? tools.find(({ name }) => name === toolName))?.name;
  };
  const known = find();
  if (known !== undefined) return known;
  if (ofServer().length === 0) await connectIdleServer(hub, session, serverId);
  const woken = find();
  if (woken !== undefined) return woken;
  const near = nearMatches(
    toolName,
    ofServer().map(({ own }) => own),
  );
  const help = near.length === 0 ? {} : { hint: `Did you mean ${near.join(", ")}?`, details: { nearMatches: near } };
  throw new ToolcribError("not_found", `The server "${serverId}" has no tool "${toolName}".`, help);
}

/** A server that connects on demand connects with the first call. */
async function connectIdleServer(hub: Hub, session: Session, serverId: string): Promise<void> {
  let info = visibleServer(hub, session, serverId);
  if (session.own.servers().some(({ id }) => id === serverId)) {
    await session.own.settled();
    info = visibleServer(hub, session, serverId);
  } else if (info.sleeping === true) return;
  else if (info.state === "idle" || info.state === "connecting") info = await hub.servers.connect(serverId);
  if (info.status === "connected") return;
  throw new ToolcribError(
    "server_unavailable",
    `The server "${serverId}" is not connected: ${info.lastError ?? `it is ${info.state}`}`,
    { hint: info.hint, details: { server: serverId } },
  );
}

function findTools(hub: Hub, session: Session, { tools }: View, query: string): ToolCapability[] {
  const found = new Set(hub.internals.search(session, query, tools.length));
  // People type the beginning of a word and expect to see it found.
  for (const tool of tools) {
    const { title, description } = tool.definition;
    if (containsText(query.trim(), [tool.name, title, description])) found.add(tool);
  }
  return [...found];
}

const toolHandlers = handlersOf({
  async listTools(input, context, { hub }) {
    const who = input.access ? accessSession(input.role, context) : context.session;
    const { entries, total, next } = pageOf(matchingTools(hub, input, { ...context, session: who }), input, toolKey);
    const accessOf = input.access ? await accessReader(hub, who) : undefined;
    const tools = entries.map((tool): DeepReadonly<ToolInfo> => {
      if (isCapability(tool)) return { ...toolInfo(tool, hub.pins, input.fields), ...accessOf?.(tool) };
      // It has no public name, because it cannot be called.
      const { source: server, name, reason } = tool;
      return { name, ...originFields({ source: server, name }), fingerprint: "", pin: "unknown", quarantined: reason };
    });
    return { tools, total, ...next };
  },
  callTool,
  async overrideTool({ name, override, save }, _context, { hub }) {
    const { overrides } = hub.internals;
    const shown = save ? await overrides.set(name, override ?? {}) : overrides.preview(name, override);
    return { ...shown, saved: save };
  },
});

function matchingTools(
  hub: Hub,
  { serverId, name, q, pin, access }: CheckedInput<"listTools">,
  { session, caller }: OperationContext,
): (ToolCapability | Quarantined)[] {
  const view = access ? withDenied(hub, session) : hub.view(session);
  const { pins } = hub;
  let tools: readonly ToolCapability[] =
    q === undefined || q.trim() === "" ? view.tools : findTools(hub, session, view, q);
  if (serverId !== undefined) {
    tools = tools.filter(({ origin }) => origin.source === serverId);
    // In-process tools and skills are sources too, but not servers.
    if (tools.length === 0 && !view.tools.some(({ origin }) => origin.source === serverId)) {
      visibleServer(hub, session, serverId);
    }
  }
  if (name !== undefined) tools = tools.filter((tool) => tool.name === name);
  if (pin !== undefined) tools = tools.filter(({ origin }) => pins.stateOf(origin.source, origin.name) === pin);
  const seesAll = caller.scopes.has("admin") && session.role === undefined;
  if (!seesAll || q !== undefined || pin !== undefined) return [...tools];
  const held = hub.internals
    .catalog()
    .tools.filter((tool) => heldReason(tool) !== undefined)
    .filter(({ origin }) => origin.source === (serverId ?? origin.source));
  if (name !== undefined) return [...tools, ...held.filter((tool) => tool.name === name)];
  const bad = hub.internals
    .quarantined()
    .filter(({ kind, source }) => kind === "tool" && source === (serverId ?? source));
  return [...tools, ...held, ...bad];
}

/** The owner sees what the rules decide, for itself or for a role. */
function accessSession(role: string | undefined, { caller, session }: OperationContext): Session {
  if (!caller.scopes.has("admin")) throw missingScope("admin");
  return role === undefined ? session : asRole(role, caller);
}

/** Tools that the view lacks because of rules, too, in the catalog's order. Those that an override hides are listed otherwise. */
function withDenied(hub: Hub, session: Session): View {
  const view = hub.view(session);
  const shown = new Map(view.tools.map((tool) => [JSON.stringify(tool.origin), tool]));
  const all = hub.internals
    .catalog()
    .tools.filter((tool) => heldReason(tool) === undefined && hub.internals.existsFor(session, tool));
  const ofHub = all.map((tool) => shown.get(JSON.stringify(tool.origin)) ?? tool);
  const listed = new Set(ofHub);
  return { ...view, tools: [...ofHub, ...view.tools.filter((tool) => !listed.has(tool))] };
}

async function accessReader(
  hub: Hub,
  session: Session,
): Promise<(tool: ToolCapability) => Pick<DeepReadonly<ToolInfo>, "access">> {
  const { config } = hub;
  const document = await readDocument(config);
  return (tool) => {
    const { verdict, rule, conditional } = hub.internals.access(session, tool);
    const place = rule && placeOf(rule, tool, session.role, { config, document });
    return { access: { verdict, conditional, rule: place } };
  };
}

/** Why a tool that its server offers is not: its override. */
function heldReason(tool: ToolCapability): string | undefined {
  const hiding = hidingLayerOf(tool);
  if (hiding !== undefined) return `hidden by ${hiding.where}`;
  const misfit = misfitOf(tool);
  return misfit && describeMisfit(tool.name, misfit);
}

function isCapability(tool: ToolCapability | Quarantined): tool is ToolCapability {
  return "definition" in tool;
}

function toolKey(tool: ToolCapability | Quarantined): string {
  return isCapability(tool) ? tool.name : JSON.stringify([tool.source, tool.name]);
}

interface PinStates {
  stateOf(source: string, tool: string): ToolInfo["pin"];
}

function toolInfo(tool: ToolCapability, pins: PinStates, fields: "all" | "summary"): DeepReadonly<ToolInfo> {
  const { name, origin, shape } = tool;
  const quarantined = heldReason(tool);
  return {
    name,
    ...originFields(origin),
    ...definitionInfo(tool, fields),
    pin: pins.stateOf(origin.source, origin.name),
    ...(quarantined === undefined ? {} : { quarantined }),
    ...(shape === undefined
      ? {}
      : { original: { name: shape.original.name, ...definitionInfo(shape.original, fields) } }),
  };
}

function definitionInfo(
  { definition, fingerprint }: ToolCapability,
  fields: "all" | "summary",
): Pick<ToolInfo, "title" | "description" | "inputSchema" | "outputSchema" | "annotations" | "fingerprint"> {
  const { inputSchema, outputSchema, annotations } = definition;
  return {
    ...titleAndDescription(definition),
    ...(fields === "all" ? { inputSchema } : {}),
    ...(fields === "all" && isJsonObject(outputSchema) ? { outputSchema } : {}),
    ...(isJsonObject(annotations) ? { annotations } : {}),
    fingerprint,
  };
}

/** A null of a server counts as absent. */
export function titleAndDescription({
  title,
  description,
}: {
  readonly title?: unknown;
  readonly description?: unknown;
}): {
  title?: string;
  description?: string;
} {
  return {
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof description === "string" ? { description } : {}),
  };
}

const pinHandlers = handlersOf({
  listPins(input, _context, { hub }) {
    const { serverId, kind, state } = input;
    const matching = hub.pins
      .list()
      .filter(
        (pin) =>
          (serverId === undefined || pin.server === serverId) &&
          (kind === undefined || pin.kind === kind) &&
          (state === undefined || pin.state === state),
      );
    const { entries, total, next } = pageOf(matching, input, (pin) => JSON.stringify([pin.server, pin.kind, pin.tool]));
    return { pins: entries, total, ...next };
  },

  async changePins({ action, serverId, tool, kind = "tool" }, { caller, session }, { hub: { pins } }) {
    const by = { door: session.door, user: caller.user ?? null, session: session.id };
    const thing = tool === undefined ? undefined : { kind, name: tool };
    const change = action === "approve" ? pins.approve(serverId, thing, by) : pins.reset(serverId, thing, by);
    return { changed: await change };
  },
});

export const catalogHandlers = { ...toolHandlers, ...pinHandlers };
