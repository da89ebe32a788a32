import type { ClientSide } from "../model/session.ts";

/**
 * Who answers a server that asks while no call is under way; undefined for the hub's own callbacks.
 * @param user Whose connection it is, where each user has one.
 * @param session The same, where each session has one.
 */
export type IdleClient = (
  server: string,
  user: string | undefined,
  session: string | undefined,
) => ClientSide | undefined;
