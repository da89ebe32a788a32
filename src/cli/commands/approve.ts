import { API_PATH } from "../../contract/rest.ts";
import { showHidden } from "../../guard/detect/show-hidden.ts";
import type { AskAnswer, AskRequest } from "../../model/decision.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import { askOnTerminal, describeApproval } from "../terminal-input.ts";
import type { Invocation } from "../command.ts";
import { findRunningHub, type RemoteHub, tokenOf } from "../remote-hub.ts";
import type { Column } from "../table.ts";

const APPROVALS_PATH = `${API_PATH}/approvals`;
/** The most that a hub gives at once. */
const PAGE_SIZE = 1000;
const ANSWERS: readonly AskAnswer[] = ["once", "session", "always", "no"];
/** Enough of an id to tell the waiting calls apart; less could be a slip of the finger. */
const MIN_ID_PREFIX_LENGTH = 4;

export async function run(invocation: Invocation): Promise<number> {
  const [id] = invocation.args;
  const given = givenAnswer(invocation);
  if (id === undefined && given !== undefined) {
    throw new ToolcribError("invalid_arguments", "--answer needs the id of a call.", {
      hint: "toolcrib approve lists those that wait.",
    });
  }
  const isPerson = isAtTerminal(invocation);
  if (!isPerson) requireToken(invocation);
  const hub = await findRunningHub(invocation, { withOwnToken: isPerson });
  const waiting = await readWaiting(hub);
  return id === undefined ? list(invocation, waiting) : answer(invocation, hub, waiting, id, given);
}

/** A question has to be seen and answered: a program that reads what is printed has no terminal for that. */
function isAtTerminal({ stdin, out }: Invocation): boolean {
  return stdin.isTTY && out.prompts.isTTY === true;
}

/**
 * The hub's own token is in a file that every program of this user can read, an agent's shell among them. Without a terminal
 * it is not taken from there: whoever answers in a script was given the right to.
 */
function requireToken({ flags, env }: Invocation): void {
  if (flags.text("token") !== undefined || tokenOf(env) !== undefined) return;
  throw new ToolcribError("denied", "Approvals are given by people, and there is no terminal to ask one on.", {
    hint: "Run it on a terminal, or use the page. A script needs a token with the scope approve.",
  });
}

const COLUMNS: readonly Column<AskRequest>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "NAME", cell: ({ name }) => showHidden(name) },
  { title: "ASKED BY", cell: ({ session }) => session.user ?? session.role ?? session.door },
  { title: "CALL", cell: ({ held }) => (held ? "refused so far" : "waits") },
  { title: "UNTIL", cell: ({ expiresAt }) => expiresAt },
  { title: "ARGUMENTS", cell: ({ arguments: args }) => showHidden(JSON.stringify(args)), shrink: true },
];

function list({ out }: Invocation, waiting: readonly AskRequest[]): number {
  if (out.json) out.value(waiting);
  else if (waiting.length === 0) out.note("No call waits for an answer.");
  else {
    out.table(COLUMNS, waiting);
    out.note("toolcrib approve <id> answers one.");
  }
  return 0;
}

async function answer(
  invocation: Invocation,
  hub: RemoteHub,
  waiting: readonly AskRequest[],
  id: string,
  given: AskAnswer | undefined,
): Promise<number> {
  const { out } = invocation;
  const request = findWaiting(waiting, id);
  const chosen = given ?? (await askWithAllArguments(invocation, hub, request.id));
  await hub.request("POST", `${APPROVALS_PATH}/${encodeURIComponent(request.id)}`, { answer: chosen });
  if (out.json) out.value({ id: request.id, name: request.name, answer: chosen });
  else {
    out.line(`${chosen === "no" ? "Refused" : `Approved (${chosen})`}: ${showHidden(request.name)}`);
    if (request.held && chosen !== "no")
      out.note("The call was refused meanwhile; it goes through when it is made again.");
  }
  return 0;
}

/** Whoever says nothing yet is shown all of what they are about to allow. */
async function askWithAllArguments(invocation: Invocation, hub: RemoteHub, id: string): Promise<AskAnswer> {
  const { approval } = await hub.request("GET", `${APPROVALS_PATH}/${encodeURIComponent(id)}`);
  if (!isRequest(approval) || approval.id !== id) {
    throw new ToolcribError("server_unavailable", `The hub at ${hub.url} does not show the waiting call.`, {
      hint: "--answer answers it unseen.",
    });
  }
  const whole = { longest: Infinity };
  const ask = askOnTerminal(invocation, whole);
  if (ask !== undefined) return ask(approval, new AbortController().signal);
  for (const line of describeApproval(approval, whole)) invocation.out.note(line);
  return "once";
}

function findWaiting(waiting: readonly AskRequest[], id: string): AskRequest {
  const exact = waiting.find((request) => request.id === id);
  if (exact !== undefined) return exact;
  const [first, another] =
    id.length < MIN_ID_PREFIX_LENGTH ? [] : waiting.filter((request) => request.id.startsWith(id));
  if (another !== undefined) {
    throw new ToolcribError("invalid_arguments", `More than one waiting call has an id that begins with ${id}.`);
  }
  if (first !== undefined) return first;
  throw new ToolcribError("not_found", `No call waits for an answer under the id ${id}.`, {
    hint: "It may have been answered, given up or timed out. toolcrib approve lists those that wait.",
  });
}

/** In the order in which they were asked. */
async function readWaiting(hub: RemoteHub): Promise<AskRequest[]> {
  const waiting: AskRequest[] = [];
  let more = "";
  do {
    const { approvals, nextCursor } = await hub.request("GET", `${APPROVALS_PATH}?limit=${PAGE_SIZE}${more}`);
    // A hub gives what it has under this type; the id is what is acted upon.
    if (!Array.isArray(approvals) || !approvals.every(isRequest)) {
      throw new ToolcribError("server_unavailable", `The hub at ${hub.url} gives no list of waiting calls.`);
    }
    waiting.push(...approvals);
    more = typeof nextCursor === "string" && approvals.length > 0 ? `&cursor=${encodeURIComponent(nextCursor)}` : "";
  } while (more !== "");
  return waiting.toReversed();
}

function isRequest(value: unknown): value is AskRequest {
  return (
    isJsonObject(value) &&
    typeof value["id"] === "string" &&
    typeof value["name"] === "string" &&
    typeof value["expiresAt"] === "string" &&
    isJsonObject(value["session"]) &&
    isJsonObject(value["origin"])
  );
}

function givenAnswer({ flags }: Invocation): AskAnswer | undefined {
  const text = flags.text("answer");
  if (text === undefined) return undefined;
  const known = ANSWERS.find((each) => each === text);
  if (known !== undefined) return known;
  throw new ToolcribError("invalid_arguments", `"${text}" is no answer.`, { hint: `Answers: ${ANSWERS.join(", ")}.` });
}
