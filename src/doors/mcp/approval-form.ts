/** Asks the client's user for approval of a call, with a form. */
import { ASK_ANSWERS, type AskAnswer, type AskCallback, type AskRequest } from "../../model/decision.ts";
import { systemClock } from "../../base/clock.ts";
import { showHidden } from "../../base/visible-text.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ClientSide } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";

/** Of each value; every key shows, so that nothing can hide behind a long neighbour. */
const MAX_VALUE_LENGTH = 200;
/** Longer arguments are not readable in a form: such a call is refused here. */
const MAX_FORM_LENGTH = 4000;

/** Sooner no one has read a form and refused: clients without a user answer by themselves, at once, some of them with an empty form. */
const MIN_REFUSAL_MS = 1000;

/**
 * Undefined if the client cannot show its user a form, and for a caller with a token that is not the operator's: a program
 * answers a form as easily as a person, and a caller must not approve its own call.
 */
export function approvalCallback(client: ClientSide, session: Session): AskCallback | undefined {
  const { elicit } = client;
  if (elicit === undefined || !session.owner || !canShowForms(client.capabilities)) return undefined;
  return async (request, signal) => {
    const shown = describeArguments(request.arguments);
    if (shown === undefined) return "no";
    const askedAt = systemClock.now();
    const result = await elicit(question(request, shown, session), { server: "toolcrib", signal });
    const answer = parseAnswer(result);
    // A form that was closed is no answer, and neither is a refusal that came too soon.
    const isLeftOpen =
      answer === "no" && (result["action"] === "cancel" || systemClock.now() - askedAt < MIN_REFUSAL_MS);
    return isLeftOpen ? untilMoot(signal) : answer;
  };
}

/** The question stays open for the operator, until one answers or the time is up. */
function untilMoot(signal: AbortSignal): Promise<AskAnswer> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve("no"), { once: true }));
}

/** The arguments as a person can read them: hidden characters made visible, long values cut. Undefined if they are too many. */
function describeArguments(args: Readonly<JsonObject>): string | undefined {
  const lines = Object.entries(args).map(([key, value]) => {
    const text = showHidden(JSON.stringify(value) ?? "null");
    const left = text.length - MAX_VALUE_LENGTH;
    const cut = left > 0 ? `${text.slice(0, MAX_VALUE_LENGTH)}… (${left} more characters)` : text;
    return `  ${showHidden(JSON.stringify(key))}: ${cut}`;
  });
  const shown = lines.join("\n");
  return shown.length > MAX_FORM_LENGTH ? undefined : shown;
}

/** An empty declaration means forms, as in older versions. */
function canShowForms(capabilities: Readonly<JsonObject>): boolean {
  const { elicitation } = capabilities;
  return isJsonObject(elicitation) && (Object.keys(elicitation).length === 0 || isJsonObject(elicitation["form"]));
}

function question({ name, origin, lasting }: AskRequest, shown: string, session: Session): JsonObject {
  const choices: Record<string, string> = {
    once: "Allow once",
    session: "Allow for this session",
    ...(session.decidesForAll && lasting?.["always-call"] !== undefined
      ? { "always-call": "Always allow exactly this call" }
      : {}),
    ...(session.decidesForAll && lasting?.["always-values"] !== undefined
      ? { "always-values": "Always allow it with these values" }
      : {}),
    ...(session.decidesForAll ? { always: "Always allow" } : {}),
    no: "Do not allow",
  };
  // The oldest form of a choice with titles: every client that knows forms knows it.
  const answer = { type: "string", title: "Answer", enum: Object.keys(choices), enumNames: Object.values(choices) };
  const server = session.mounted?.nameOf(origin.source) ?? origin.source;
  return {
    message: `Allow ${name} of the server "${server}"${shown === "" ? "" : ` with\n${shown}\n`}?`,
    requestedSchema: {
      type: "object",
      properties: { answer },
      required: ["answer"],
    },
  };
}

/** A refusal where the form was not filled in. */
function parseAnswer({ action, content }: JsonObject): AskAnswer {
  const answer = action === "accept" && isJsonObject(content) ? content["answer"] : undefined;
  return ASK_ANSWERS.find((each) => each === answer) ?? "no";
}
