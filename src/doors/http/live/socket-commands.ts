/** The commands of one WebSocket: reading frames, running commands, replies. */
import { InFlight } from "../../../base/async.ts";
import { nearMatches } from "../../../base/near-matches.ts";
import type { OperationName } from "../../../contract/operations.ts";
import { COMMANDS, EXTRA_TOOL_COMMANDS, type SocketCommand } from "../../../contract/websocket.ts";
import { asToolcribError, type ErrorObject, ToolcribError } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import { invalidInput, type OperationContext } from "../api/operation-handler.ts";
import { Operations } from "../api/run-operation.ts";

/** Operations that change the hub finish even if the client disconnects: half a change would be worse. */
const UNCANCELLABLE: ReadonlySet<OperationName> = new Set<OperationName>([
  "addServer",
  "updateServer",
  "removeServer",
  "connectServer",
  "disconnectServer",
  "finishLogin",
  "endLogin",
  "importSkills",
  "removeSkill",
  "closeSession",
  "clearTaint",
  "answerApproval",
  "changePins",
  "overrideTool",
  "changeConfig",
]);

const MAX_RUNNING_COMMANDS = 64;

interface CommandsOptions {
  readonly operations: Pick<Operations, "run">;
  readonly context: Omit<OperationContext, "signal" | "onProgress">;
  readonly send: (frame: object) => void;
  /** Answers with the error. */
  readonly fail: (id: CommandId | null, thrown: unknown) => void;
}

export class SocketCommands {
  readonly #options: CommandsOptions;
  readonly #running = new Map<CommandId, AbortController>();
  readonly #inFlight = new InFlight();
  #refusing = false;

  constructor(options: CommandsOptions) {
    this.#options = options;
  }

  take(frame: JsonObject): void {
    const id = commandId(frame);
    try {
      if (id === undefined) {
        throw new ToolcribError("invalid_arguments", "A command needs an id, a number or a text.", {
          hint: 'The reply carries it: {"id": 1, "type": "mcp.listServers"}.',
        });
      }
      const command = findCommand(frame["type"]);
      this.#admit(id);
      const input = commandInput(command, frame);
      void this.#inFlight.track(() => this.#run(id, command, input));
    } catch (error) {
      // A second command with the same id must not look like the answer to the first.
      const isTaken = id !== undefined && this.#running.has(id);
      this.#options.fail(isTaken ? null : (id ?? null), error);
    }
  }

  /** False if it is not running, or cannot be cancelled. */
  cancel(id: CommandId): boolean {
    const controller = this.#running.get(id);
    controller?.abort();
    return controller?.signal.aborted === true;
  }

  /** Cancels the commands that can be cancelled. */
  cancelAll(): void {
    for (const controller of this.#running.values()) controller.abort();
  }

  /** Resolves when nothing runs; what comes from now on is refused. */
  finish(): Promise<void> {
    this.#refusing = true;
    return this.#inFlight.whenIdle();
  }

  #admit(id: CommandId): void {
    if (this.#refusing) throw new ToolcribError("server_unavailable", "The hub is shutting down.");
    if (this.#running.has(id)) {
      throw new ToolcribError("conflict", "A command with this id is in progress.", { details: { command: id } });
    }
    if (this.#running.size < MAX_RUNNING_COMMANDS) return;
    throw new ToolcribError("rate_limited", `${MAX_RUNNING_COMMANDS} commands of this connection are in progress.`, {
      hint: "Wait for a reply before the next one.",
    });
  }

  async #run(id: CommandId, command: SocketCommand, input: JsonObject): Promise<void> {
    const { operation, event } = command;
    const { operations, context, send, fail } = this.#options;
    const controller = UNCANCELLABLE.has(operation) ? new NeverAborted() : new AbortController();
    this.#running.set(id, controller);
    const onProgress: OperationContext["onProgress"] = (progress) => send({ id, progress });
    try {
      const output = await operations.run(operation, input, { ...context, signal: controller.signal, onProgress });
      const fields = isJsonObject(output) ? output : {};
      send({ ...fields, id, ok: true });
      if (event !== undefined) send(listEvent(event, fields));
    } catch (error) {
      fail(id, withCommandNames(command, error));
    } finally {
      this.#running.delete(id);
    }
  }
}

/** For operations that always finish. */
class NeverAborted extends AbortController {
  override abort(): void {}
}

export type CommandId = string | number;

const MAX_ID_LENGTH = 200;

/** Parses one frame. */
export function parseFrame(text: string): JsonObject {
  let frame: unknown;
  try {
    frame = JSON.parse(text);
  } catch {
    // Said below.
  }
  if (isJsonObject(frame)) return frame;
  throw new ToolcribError("invalid_arguments", "A frame must be one JSON object.", {
    hint: 'For example {"id": 1, "type": "mcp.listServers"}.',
  });
}

export function commandId({ id }: JsonObject): CommandId | undefined {
  if (typeof id === "number" && Number.isFinite(id)) return id;
  return typeof id === "string" && id !== "" && id.length <= MAX_ID_LENGTH ? id : undefined;
}

/** Under the names of the contract, or under that of the operation itself. */
function findCommand(type: unknown): SocketCommand {
  const known: Readonly<Record<string, SocketCommand>> = COMMANDS;
  if (typeof type === "string") {
    const command = Object.hasOwn(known, type) ? known[type] : undefined;
    if (command !== undefined) return command;
    if (Operations.has(type)) return { operation: type };
  }
  const names = [...Object.keys(COMMANDS), ...Object.keys(EXTRA_TOOL_COMMANDS)];
  const near = typeof type === "string" ? nearMatches(type, names) : [];
  throw new ToolcribError("invalid_arguments", "This is not a command.", {
    hint:
      near.length === 0
        ? "Types: mcp.…, skills.…, openclaw.…, sessions.…, approvals.answer, and every operation's name."
        : `Did you mean ${near.join(", ")}?`,
  });
}

/** The operation's input: what the command says, under the operation's names. */
export function commandInput(
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

/** The input error, with the field names of the command. */
function withCommandNames({ fields = {} }: SocketCommand, thrown: unknown): unknown {
  const own = new Map(Object.entries(fields).map(([name, input]) => [input, name]));
  const issues = thrown instanceof ToolcribError ? thrown.details?.["issues"] : undefined;
  if (own.size === 0 || !isIssues(issues)) return thrown;
  return invalidInput(issues.map(({ path, message }) => ({ path: own.get(path) ?? path, message })));
}

function isIssues(value: unknown): value is { path: string; message: string }[] {
  return Array.isArray(value) && value.every((each) => isJsonObject(each) && typeof each["path"] === "string");
}

/** The list event for the client. Skills have the field names of events about one skill. */
function listEvent(type: string, output: JsonObject): JsonObject {
  const { skills, ...rest } = output;
  if (!Array.isArray(skills)) return { ...output, type };
  const imports = skills.map((skill: unknown) => (isJsonObject(skill) ? { ...skill, skillId: skill["id"] } : skill));
  return { ...rest, imports, type };
}

/** Masked. An unexpected error goes to the log, not to the client. */
export function toErrorObject(
  thrown: unknown,
  redactor: { maskAll<Value>(value: Value): Value },
  warn: (message: string) => void,
): ErrorObject {
  if (thrown instanceof ToolcribError) return redactor.maskAll(thrown.toObject());
  warn(`A command could not be answered: ${redactor.maskAll(asToolcribError(thrown).message)}`);
  return { code: "internal", message: "An internal error. The hub's log has the details." };
}
