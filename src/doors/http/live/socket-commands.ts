/** The commands of one socket that are under way. */
import type { OperationName } from "../../../contract/operations.ts";
import type { SocketCommand } from "../../../contract/socket.ts";
import { ToolcribError } from "../../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../../model/json.ts";
import type { OperationContext } from "../api/operation.ts";
import type { Operations } from "../api/operations.ts";
import { type CommandId, commandId, commandOf, inOwnNames, inputOf, listEvent } from "./frames.ts";

/** What changes the hub is finished once it has begun, whoever leaves meanwhile: half of it would help nobody. */
const FINISHED: ReadonlySet<OperationName> = new Set<OperationName>([
  "addServer",
  "updateServer",
  "removeServer",
  "connectServer",
  "disconnectServer",
  "importSkills",
  "removeSkill",
  "closeSession",
  "answerApproval",
  "changePins",
]);

const MOST_AT_ONCE = 64;

export interface CommandsOptions {
  readonly operations: Pick<Operations, "run">;
  readonly context: Omit<OperationContext, "signal" | "onProgress">;
  readonly send: (frame: object) => void;
  /** Answers with the error. */
  readonly fail: (id: CommandId | null, thrown: unknown) => void;
}

export class SocketCommands {
  readonly #options: CommandsOptions;
  readonly #running = new Map<CommandId, AbortController>();
  #whenIdle: (() => void)[] = [];
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
      const command = commandOf(frame["type"]);
      this.#admit(id);
      void this.#run(id, command, inputOf(command, frame));
    } catch (error) {
      // A second command of the same id must not look like the answer to the first.
      const isTaken = id !== undefined && this.#running.has(id);
      this.#options.fail(isTaken ? null : (id ?? null), error);
    }
  }

  /** False if it does not run, or is one that is finished. */
  cancel(id: CommandId): boolean {
    const controller = this.#running.get(id);
    controller?.abort();
    return controller?.signal.aborted === true;
  }

  /** Gives up what can be given up. */
  cancelAll(): void {
    for (const controller of this.#running.values()) controller.abort();
  }

  /** Resolves when nothing runs; what comes from now on is refused. */
  finish(): Promise<void> {
    this.#refusing = true;
    return this.#running.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  #admit(id: CommandId): void {
    if (this.#refusing) throw new ToolcribError("server_unavailable", "The hub stops.");
    if (this.#running.has(id)) {
      throw new ToolcribError("conflict", "A command of this id is under way.", { details: { command: id } });
    }
    if (this.#running.size < MOST_AT_ONCE) return;
    throw new ToolcribError("rate_limited", `${MOST_AT_ONCE} commands of this connection are under way.`, {
      hint: "Wait for a reply before the next one.",
    });
  }

  async #run(id: CommandId, command: SocketCommand, input: JsonObject): Promise<void> {
    const { operation, event } = command;
    const { operations, context, send, fail } = this.#options;
    const controller = FINISHED.has(operation) ? new Unaborted() : new AbortController();
    this.#running.set(id, controller);
    const onProgress: OperationContext["onProgress"] = (progress) => send({ id, progress });
    try {
      const output = await operations.run(operation, input, { ...context, signal: controller.signal, onProgress });
      const fields = isJsonObject(output) ? output : {};
      send({ ...fields, id, ok: true });
      if (event !== undefined) send(listEvent(event, fields));
    } catch (error) {
      fail(id, inOwnNames(command, error));
    } finally {
      this.#running.delete(id);
      if (this.#running.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    }
  }
}

/** For what is finished in any case. */
class Unaborted extends AbortController {
  override abort(): void {}
}
