/** The endpoint at which the operator answers calls that wait for a yes. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { AskAnswer, AskRequest } from "../../model/ask.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import { sendJson } from "./answers.ts";
import type { HttpExchange, HttpRoute } from "./exchange.ts";
import { type ListedApproval, listedApproval } from "./listed-approval.ts";
import { nothingAt, refuseMethod } from "./own-routes.ts";

export const APPROVALS_PATH = "/api/v1/approvals";

const ANSWERS: readonly AskAnswer[] = ["once", "session", "always", "no"];

/** The part of the hub that the endpoint needs. */
interface AskingHub {
  asked(): readonly AskRequest[];
  /** False if the call no longer waits. */
  answer(id: string, answer: AskAnswer): boolean;
}

/** Takes secrets out of every string of a value: arguments may hold some. */
interface Masking {
  maskAll<Value>(value: Value): Value;
}

export function approvalRoutes(hub: AskingHub, redactor: Masking): HttpRoute[] {
  return [
    {
      path: APPROVALS_PATH,
      access: "admin",
      handle: (exchange) => {
        const rest = exchange.path.slice(APPROVALS_PATH.length + 1);
        if (rest.includes("/")) throw nothingAt(exchange.path);
        return rest === "" ? list(exchange) : one(exchange, rest);
      },
    },
  ];

  async function list(exchange: HttpExchange): Promise<void> {
    if (!isRead(exchange)) {
      refuseMethod(exchange, ["GET", "HEAD"]);
      return;
    }
    const approvals: ListedApproval[] = [];
    for (const request of hub.asked()) {
      approvals.push(listedApproval(request, (value) => redactor.maskAll(value)));
      // There may be many of them; others get their turn in between.
      await nextTurn();
    }
    sendJson(exchange.response, 200, { approvals });
  }

  async function one(exchange: HttpExchange, id: string): Promise<void> {
    if (isRead(exchange)) {
      const approval = hub.asked().find((request) => request.id === id);
      if (approval === undefined) throw notWaiting(id);
      sendJson(exchange.response, 200, { approval: redactor.maskAll(approval) });
    } else if (exchange.request.method === "POST") {
      const answer = parseAnswer(await exchange.readBody());
      if (!hub.answer(id, answer)) throw notWaiting(id);
      sendJson(exchange.response, 200, { id, answer });
    } else refuseMethod(exchange, ["GET", "HEAD", "POST"]);
  }
}

function isRead({ request }: HttpExchange): boolean {
  return request.method === "GET" || request.method === "HEAD";
}

function notWaiting(id: string): ToolcribError {
  return new ToolcribError("not_found", `No call waits for an answer under the id ${id}.`, {
    hint: "It may have been answered, given up or timed out.",
  });
}

function parseAnswer(body: Buffer): AskAnswer {
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch {
    // Said below.
  }
  const given = isJsonObject(value) ? value["answer"] : undefined;
  const answer = ANSWERS.find((each) => each === given);
  if (answer !== undefined) return answer;
  throw new ToolcribError("invalid_arguments", 'The body must be JSON with an "answer".', {
    hint: `Answers: ${ANSWERS.join(", ")}.`,
  });
}
