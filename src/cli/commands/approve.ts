/** `toolcrib approve`: lists and answers the calls that wait for approval at a running hub. */
import { API_PATH } from "../../contract/rest.ts";
import { showHidden } from "../../base/visible-text.ts";
import { ASK_ANSWERS, type AskAnswer, type AskRequest } from "../../model/decision.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import { askOnTerminal, describeApproval } from "../terminal-input.ts";
import type { Invocation } from "../command.ts";
import { findRunningHub, type RemoteHub, tokenOf } from "../remote-hub.ts";
import type { Column } from "../table.ts";

const APPROVALS_PATH = `${API_PATH}/approvals`;
/** The maximum that a hub returns. */
const PAGE_SIZE = 1000;
/** A shorter prefix could be a typo. */
const MIN_ID_PREFIX_LENGTH = 4;

export async function run(invocation: Invocation): Promise<number> {
  const [id] = invocation.args;
  const given = givenAnswer(invocation);
  if (id === undefined && given !== undefined) {
    throw new ToolcribError("invalid_arguments", "--answer needs the id of a call.", {
      hint: "Run toolcrib approve to list the waiting calls.",
    });
  }
  // The question must be visible too, so stderr must be a terminal as well.
  const isPerson = invocation.stdin.isTTY && invocation.out.prompts.isTTY === true;
  if (!isPerson) requireToken(invocation, "Approving a call", "approve");
  const hub = await findRunningHub(invocation, { withOwnToken: isPerson });
  const waiting = await readWaiting(hub);
  return id === undefined ? list(invocation, waiting) : answer(invocation, hub, waiting, id, given);
}

/**
 * The hub's own token is in a file that every program of this user can read, including an agent's shell. Without a terminal
 * it is not used: a script that answers must have been given a token.
 */
export function requireToken({ flags, env }: Invocation, what: string, scope: "approve" | "admin"): void {
  if (flags.text("token") !== undefined || tokenOf(env) !== undefined) return;
  throw new ToolcribError("denied", `${what} needs a person, and there is no terminal to ask on.`, {
    hint: `Run it on a terminal, or use the web page. A script needs a token with the scope ${scope}.`,
  });
}

const COLUMNS: readonly Column<AskRequest>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "NAME", cell: ({ name }) => showHidden(name) },
  {
    title: "REQUESTED BY",
    cell: ({ session }) => session.user ?? session.client?.name ?? session.role ?? session.door,
  },
  { title: "CALL", cell: ({ held }) => (held ? "refused for now" : "waiting") },
  { title: "UNTIL", cell: ({ expiresAt }) => expiresAt },
  { title: "ARGUMENTS", cell: ({ arguments: args }) => showHidden(JSON.stringify(args)), shrink: true },
];

function list({ out }: Invocation, waiting: readonly AskRequest[]): number {
  out.list(COLUMNS, waiting, "No calls are waiting for approval.");
  if (!out.json && waiting.length > 0) out.note("Run toolcrib approve <id> to answer one.");
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
      out.note("The call was refused in the meantime. It succeeds when it is made again.");
  }
  return 0;
}

async function askWithAllArguments(invocation: Invocation, hub: RemoteHub, id: string): Promise<AskAnswer> {
  const { approval } = await hub.request("GET", `${APPROVALS_PATH}/${encodeURIComponent(id)}`);
  if (!isRequest(approval) || approval.id !== id) {
    throw new ToolcribError("server_unavailable", `The hub at ${hub.url} did not return the waiting call.`, {
      hint: "Use --answer to answer it without seeing it.",
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
    throw new ToolcribError("invalid_arguments", `Several waiting calls have an id that begins with ${id}.`);
  }
  if (first !== undefined) return first;
  throw new ToolcribError("not_found", `No call with the id ${id} is waiting for approval.`, {
    hint: "It may have been answered, cancelled or timed out. Run toolcrib approve to list the waiting calls.",
  });
}

/** Oldest first. */
async function readWaiting(hub: RemoteHub): Promise<AskRequest[]> {
  const waiting: AskRequest[] = [];
  let more = "";
  do {
    const { approvals, nextCursor } = await hub.request("GET", `${APPROVALS_PATH}?limit=${PAGE_SIZE}${more}`);
    if (!Array.isArray(approvals) || !approvals.every(isRequest)) {
      throw new ToolcribError("server_unavailable", `The hub at ${hub.url} did not return a list of waiting calls.`);
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
  const known = ASK_ANSWERS.find((each) => each === text);
  if (known !== undefined) return known;
  throw new ToolcribError("invalid_arguments", `"${text}" is not a valid answer.`, {
    hint: `Answers: ${ASK_ANSWERS.join(", ")}.`,
  });
}
