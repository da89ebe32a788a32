/** What comes in on a socket, and how errors go out. */
import { EXTRA_TOOL_COMMANDS } from "../../../contract/extra-tools.ts";
import { COMMANDS, type CommandName, type SocketCommand } from "../../../contract/socket.ts";
import { nearMatches } from "../../../catalog/near-matches.ts";
import { asToolcribError, type ErrorObject, ToolcribError } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import { invalidInput } from "../api/check-input.ts";
import { Operations } from "../api/operations.ts";

export type CommandId = string | number;

const LONGEST_ID = 200;

export function parseFrame(text: string): JsonObject {
  let frame: unknown;
  try {
    frame = JSON.parse(text);
  } catch {
    // Said below.
  }
  if (isJsonObject(frame)) return frame;
  throw new ToolcribError("invalid_arguments", "A frame must be one JSON object.", {
    hint: 'Such as {"id": 1, "type": "mcp.listServers"}.',
  });
}

export function commandId({ id }: JsonObject): CommandId | undefined {
  if (typeof id === "number" && Number.isFinite(id)) return id;
  return typeof id === "string" && id !== "" && id.length <= LONGEST_ID ? id : undefined;
}

/** Under the names of the contract, or under that of the operation itself. */
export function commandOf(type: unknown): SocketCommand {
  if (typeof type === "string") {
    if (isCommand(type)) return COMMANDS[type];
    if (Operations.has(type)) return { operation: type };
  }
  const names = [...Object.keys(COMMANDS), ...Object.keys(EXTRA_TOOL_COMMANDS)];
  const near = typeof type === "string" ? nearMatches(type, names) : [];
  throw new ToolcribError("invalid_arguments", "There is no such type of command.", {
    hint:
      near.length === 0
        ? "Types: mcp.…, skills.…, openclaw.…, sessions.…, approvals.answer, and every operation's name."
        : `Did you mean ${near.join(", ")}?`,
  });
}

function isCommand(type: string): type is CommandName {
  return Object.hasOwn(COMMANDS, type);
}

/** The operation's input: what the command says, under the operation's names. */
export function inputOf(
  { fields = {}, preset = {} }: Pick<SocketCommand, "fields" | "preset">,
  frame: JsonObject,
): JsonObject {
  // Without a prototype, because a field may be called `__proto__`.
  const input: JsonObject = Object.assign(Object.create(null) as JsonObject, preset);
  for (const [name, value] of Object.entries(frame)) {
    if (name !== "id" && name !== "type") input[Object.hasOwn(fields, name) ? (fields[name] ?? name) : name] = value;
  }
  return input;
}

/** What is wrong with the input, under the names that the command has for it. */
export function inOwnNames({ fields = {} }: SocketCommand, thrown: unknown): unknown {
  const own = new Map(Object.entries(fields).map(([name, input]) => [input, name]));
  const issues = thrown instanceof ToolcribError ? thrown.details?.["issues"] : undefined;
  if (own.size === 0 || !isIssues(issues)) return thrown;
  return invalidInput(issues.map(({ path, message }) => ({ path: own.get(path) ?? path, message })));
}

function isIssues(value: unknown): value is { path: string; message: string }[] {
  return Array.isArray(value) && value.every((each) => isJsonObject(each) && typeof each["path"] === "string");
}

/** The list event that goes to the asker. Skills are named there as the events about one skill name it, too. */
export function listEvent(type: string, output: JsonObject): JsonObject {
  const { skills, ...rest } = output;
  return {
    ...rest,
    ...(skills === undefined ? {} : { imports: Array.isArray(skills) ? skills.map(withSkillId) : skills }),
    type,
  };
}

function withSkillId(skill: unknown): unknown {
  return isJsonObject(skill) ? { ...skill, skillId: skill["id"] } : skill;
}

/** Masked. A fault that nobody foresaw is told to the log and not to the client. */
export function errorFor(
  thrown: unknown,
  redactor: { maskAll<Value>(value: Value): Value },
  warn: (message: string) => void,
): ErrorObject {
  if (thrown instanceof ToolcribError) return redactor.maskAll(thrown.toObject());
  warn(`A command could not be answered: ${redactor.maskAll(asToolcribError(thrown).message)}`);
  return { code: "internal", message: "A fault in Toolcrib. The hub's log says more." };
}
