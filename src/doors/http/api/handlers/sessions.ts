import { ToolcribError } from "../../../../model/errors.ts";
import type { Handlers } from "../operation.ts";

export const sessionHandlers: Handlers<"listSessions" | "getSession" | "closeSession"> = {
  listSessions: (input, _context, { hub }) => hub.activity.sessions(input),

  async getSession({ sessionId }, _context, { hub }) {
    const session = await hub.activity.session(sessionId);
    if (session !== undefined) return { session };
    throw new ToolcribError("not_found", `No session has the id ${sessionId}.`);
  },

  async closeSession({ sessionId }, _context, { hub }) {
    await hub.activity.closeSession(sessionId);
    return { sessionId };
  },
};
