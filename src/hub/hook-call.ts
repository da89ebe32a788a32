/** A call in the form that hooks see, and the use that is left after they have narrowed it. */
import type { Use } from "../model/source.ts";
import { argumentsOf, type CallInProgress, type CallPath, publicNameOf } from "./call-path.ts";
import type { HookCall } from "./hooks.ts";
import type { Target } from "./target.ts";

export function describeCall({ id, session, use }: CallInProgress, target: Target): HookCall {
  return {
    callId: id,
    session: {
      id: session.id,
      door: session.door,
      owner: session.owner,
      role: session.role,
    },
    kind: use.kind,
    name: publicNameOf(use),
    origin: target.capability.origin,
    arguments: argumentsOf(use),
  };
}

export async function narrowUse(
  path: CallPath,
  seen: HookCall,
  use: Use,
  notes: Record<string, unknown>,
): Promise<Use> {
  const args = await path.hooks.before(seen, notes);
  if (use.kind === "tool") return { ...use, arguments: args };
  // Hooks only leave arguments out, so the values of a prompt are still the strings they were.
  if (use.kind === "prompt") return { ...use, arguments: args as Record<string, string> };
  return use;
}
