import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Hub } from "../hub/hub.ts";
import { ConfigSchema } from "../model/config.ts";

const SUGGESTED = "guard.suggested";

/** Says once for each home that there is a guard to turn on, where the config says nothing about it. */
export async function suggestGuard(hub: Hub, tell: (message: string) => void): Promise<void> {
  const { store } = hub.internals;
  if (
    store === undefined ||
    !isDeepStrictEqual(hub.config.config.guard, ConfigSchema.shape.guard.parse(undefined, { jitless: true }))
  )
    return;
  const own = randomUUID();
  // A store that cannot be written is reported elsewhere.
  const first = await store.settings.setOnce(SUGGESTED, own).catch(() => undefined);
  if (first !== own) return;
  tell(
    'Consider "guard": "balanced" in the config: after a session has read what strangers wrote, tools that destroy or send out data need approval.',
  );
}
