import type { Handlers } from "../operation.ts";
import { pageOf } from "../paging.ts";

export const pinHandlers: Handlers<"listPins" | "changePins"> = {
  async listPins(input, _context, { hub }) {
    const { serverId, kind, state } = input;
    const matching = (await hub.pins.list()).filter(
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
};
