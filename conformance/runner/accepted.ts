/** Where a gateway rightly differs from the server behind it, check by check. Everything else that differs is a fault. */
import type { AcceptedDifference } from "./compare.ts";
import type { Suite } from "./suites.ts";
import type { Upstream } from "./upstream.ts";

const ALWAYS: readonly AcceptedDifference[] = [
  {
    scenario: "server-sse-multiple-streams",
    check: "server-sse-streams-functional",
    as: "INFO",
    reason: "The fixture answers a list as an event stream, Toolcrib as JSON.",
    quote:
      "the server MUST either return Content-Type: text/event-stream, to initiate an SSE stream, or Content-Type: application/json, to return one JSON object. The client MUST support both these cases.",
    from: "specification 2025-11-25, Streamable HTTP, Sending Messages to the Server",
  },
  ...[
    { check: "server-sse-disconnect-resume", as: "INFO" as const },
    { check: "outgoing-request", as: "absent" as const },
    { check: "incoming-response", as: "absent" as const },
    { check: "incoming-sse-event", as: "INFO" as const },
  ].map((each) => ({
    ...each,
    scenario: "server-sse-polling",
    reason:
      "The fixture ends its stream before it answers, and the client asks again; Toolcrib answers on the stream that it opened.",
    quote:
      "The server MAY close the connection before sending the JSON-RPC response if it has sent an SSE event with an event ID to the client",
    from: "SEP-1699, taken into the specification 2025-11-25",
  })),
];

const NO_NAMES = {
  reason: "A legacy server's questions have no names, so Toolcrib makes them up; the suite asks for the fixture's own.",
  quote:
    "A map of server-initiated requests that the client must fulfill. Keys are server-assigned identifiers; values are the request objects.",
  from: "schema 2026-07-28, InputRequests",
};
const NO_STATE = {
  reason: "An answer that comes before the question belongs to no call of a legacy server.",
  quote:
    "A map of client responses to server-initiated requests. Keys correspond to the keys in the InputRequests map; values are the client's result for each request.",
  from: "schema 2026-07-28, InputResponses",
};

/** The fixture has no tasks; these checks pass without any, because Toolcrib has the methods. */
const TASK_METHODS: readonly AcceptedDifference[] = [
  {
    scenario: "tasks-capability-negotiation",
    check: "sep-2663-tasks-methods-non-declaring",
    as: "SUCCESS",
    reason: "Toolcrib has the methods of the tasks extension, the fixture does not.",
    quote:
      "Servers MUST return this error for non-declaring clients issuing tasks/get, tasks/update, and tasks/cancel requests.",
    from: "specification of the tasks extension (SEP-2663) 2026-07-28, Protocol Errors, Missing required client capabilities",
  },
  {
    scenario: "tasks-dispatch-and-envelope",
    check: "sep-2663-tasks-get-invalid-task-id-32602",
    as: "SUCCESS",
    reason: "Toolcrib has the methods of the tasks extension, the fixture does not.",
    quote: "Invalid or nonexistent taskId: -32602 (Invalid params). Servers MUST return this error for tasks/get.",
    from: "specification of the tasks extension (SEP-2663) 2026-07-28, Protocol Errors",
  },
];

const MODERN_CLIENT_LEGACY_SERVER: readonly AcceptedDifference[] = [
  {
    scenario: "input-required-result-basic-elicitation",
    check: "sep-2322-elicitation-incomplete",
    as: "FAILURE",
    ...NO_NAMES,
  },
  {
    scenario: "input-required-result-basic-elicitation",
    check: "sep-2322-elicitation-complete",
    as: "absent",
    ...NO_NAMES,
  },
  {
    scenario: "input-required-result-ignore-extra-params",
    check: "sep-2322-ignore-unexpected-params",
    as: "WARNING",
    ...NO_STATE,
  },
];

export function acceptedDifferences(suite: Suite, upstream: Upstream): readonly AcceptedDifference[] {
  const legacy = upstream === "http-legacy" || upstream === "stdio";
  if (suite.version !== "2026-07-28") return ALWAYS;
  return legacy ? [...ALWAYS, ...TASK_METHODS, ...MODERN_CLIENT_LEGACY_SERVER] : [...ALWAYS, ...TASK_METHODS];
}
