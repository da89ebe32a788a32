/** Skills with `command-dispatch: tool`: their arguments go straight to the tool that they name, by the one call path. */
import type { ToolCapability } from "../../model/capability.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Result } from "../../model/protocol.ts";
import type { UseContext } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";
import { type OfferedSkill, SKILL_PREFIX } from "../../skills/offer/offered-skill.ts";
import { type InnerCall, innerCall } from "../inner-call.ts";

export interface DispatchOptions {
  /** The server that a skill comes from; undefined for the user's own. */
  readonly serverOf: (skill: OfferedSkill) => string | undefined;
  readonly session: (id: string) => Session | undefined;
  readonly tools: (session: Session) => readonly ToolCapability[];
  readonly call: InnerCall;
}

export function dispatcher(options: DispatchOptions) {
  return async (skill: OfferedSkill, raw: string, context: UseContext): Promise<Result> => {
    const session = options.session(context.session.id);
    if (session === undefined) throw new ToolcribError("cancelled", "The session is closed.");
    const wanted = dispatchedCall(skill, raw, options.tools(session), options.serverOf(skill));
    return innerCall(options.call, session, wanted, context);
  };
}

/** The call that a skill's raw arguments stand for. */
export function dispatchedCall(
  skill: OfferedSkill,
  raw: string,
  tools: readonly ToolCapability[],
  server: string | undefined,
): { readonly name: string; readonly arguments: JsonObject } {
  const target = dispatchTarget(skill, tools, server);
  return { name: target.name, arguments: rawArguments(skill, raw, target) };
}

/** The tool by its public name, else the only one that its source calls so. A server's skill reaches that server only. */
export function dispatchTarget(
  skill: OfferedSkill,
  tools: readonly ToolCapability[],
  server: string | undefined,
): ToolCapability {
  const wanted = skill.facts.dispatch?.tool ?? "";
  const others = tools.filter(
    // A skill that names a skill could go round for ever.
    ({ name, origin }) => !name.startsWith(SKILL_PREFIX) && (server === undefined || origin.source === server),
  );
  const exact = others.find(({ name }) => name === wanted);
  if (exact !== undefined) return exact;
  const [only, another] = others.filter(({ origin }) => origin.name === wanted);
  if (only !== undefined && another === undefined) return only;
  const why = another === undefined ? "there is no such tool here" : "several servers have one";
  throw new ToolcribError("not_found", `The skill ${skill.facts.name} hands over to the tool "${wanted}": ${why}.`, {
    hint:
      another === undefined ? "`toolcrib list` shows what there is." : "Name it in SKILL.md as `toolcrib list` does.",
  });
}

/** OpenClaw's names; those that a tool does not take are left out where it takes no others. */
function rawArguments(skill: OfferedSkill, raw: string, { definition }: ToolCapability): JsonObject {
  const all: JsonObject = { command: raw, commandName: skill.facts.name, skillName: skill.facts.name };
  const { properties, additionalProperties } = definition.inputSchema;
  if (additionalProperties !== false || !isJsonObject(properties)) return all;
  return Object.fromEntries(Object.entries(all).filter(([name]) => Object.hasOwn(properties, name)));
}
