import type { ClientSide } from "../model/session.ts";

/**
 * Who answers a server that asks while no call is under way; undefined for the hub's own callbacks.
 * @param user Whose connection it is, where each user has one.
 */
export type IdleClient = (server: string, user: string | undefined) => ClientSide | undefined;
