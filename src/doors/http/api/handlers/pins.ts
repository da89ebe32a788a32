import type { Handlers } from "../operation.ts";
import { pageOf } from "../paging.ts";

export const pinHandlers: Handlers<"listPins" | "changePins"> = {
  async listPins(input, _context, { hub }) {
    const { serverId, state } = input;
    const matching = (await hub.pins.list()).filter(
      (pin) => (serverId === undefined || pin.server === serverId) && (state === undefined || pin.state === state),
    );
    const { entries, total, next } = pageOf(matching, input, ({ server, tool }) => JSON.stringify([server, tool]));
    return { pins: entries, total, ...next };
  },

  async changePins({ action, serverId, tool }, { caller, session }, { hub: { pins } }) {
    const by = { door: session.door, user: caller.user ?? null, session: session.id };
    const change = action === "approve" ? pins.approve(serverId, tool, by) : pins.reset(serverId, tool, by);
    return { changed: await change };
  },
};
