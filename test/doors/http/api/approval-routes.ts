/** The API of a hub at which calls wait, and nothing else is there. */
import { CallerSessions } from "../../../../src/doors/http/api/caller-sessions.ts";
import { Operations } from "../../../../src/doors/http/api/run-operation.ts";
import type { ApiParts } from "../../../../src/doors/http/api/operation-handler.ts";
import { apiRoutes } from "../../../../src/doors/http/api/rest-routes.ts";
import type { HttpRoute } from "../../../../src/doors/http/http-exchange.ts";
import { HubActivity, type ActivitySource } from "../../../../src/hub/activity/hub-activity.ts";
import type { Hub } from "../../../../src/hub/hub.ts";
import type { HubEvents } from "../../../../src/hub/hub-events.ts";
import { HttpSchema } from "../../../../src/model/config.ts";
import type { AskAnswer, AskRequest } from "../../../../src/model/decision.ts";
import { systemClock } from "../../../../src/base/clock.ts";
import { Emitter } from "../../../../src/base/emitter.ts";
import type { Redactor } from "../../../../src/secrets/redactor.ts";
import { Session } from "../../../../src/sessions/session.ts";

interface Asking {
  readonly routes: HttpRoute[];
  /** Those that were given, in their order. */
  readonly answers: [string, AskAnswer][];
}

/** @param waiting In the order in which they were asked. */
export function approvalRoutes(waiting: AskRequest[], redactor: Redactor): Asking {
  const answers: [string, AskAnswer][] = [];
  const events = new Emitter<HubEvents>();
  const approvals = {
    pending: () => waiting,
    answer(id: string, answer: AskAnswer) {
      const request = waiting.find((each) => each.id === id);
      if (request === undefined) return false;
      waiting.splice(waiting.indexOf(request), 1);
      answers.push([id, answer]);
      events.emit("answer", { request, answer });
      return true;
    },
  };
  // Approvals are all that is asked of it.
  const activeHub = { approvals } as unknown as ActivitySource;
  let now = 1_000_000;
  const clock = { ...systemClock, now: () => now++ };
  const mask = redactor.maskAll;
  const options = { clock, events, mask, store: undefined, home: "", findings: () => [] };
  const activity = new HubActivity({ ...options, hub: () => activeHub });
  for (const request of waiting) events.emit("ask", request);
  const operatorHub = {
    internals: { activity },
    config: { config: { http: HttpSchema.parse({}) } },
    on: events.on.bind(events),
    openSession: () => new Session(),
  } as unknown as Hub;
  const parts: ApiParts = { hub: operatorHub, redactor, version: "0" };
  const operations = new Operations(parts);
  const sessions = new CallerSessions(operatorHub, { now: () => 0, after: () => () => {} });
  return { routes: apiRoutes({ ...parts, operations, sessions }), answers };
}
