/** Every operation of the contract: who may run it is checked, then what was sent; what comes out is masked. */
import { OPERATIONS, type OperationName } from "../../../contract/operations.ts";
import type { Scope } from "../../../model/caller.ts";
import { systemClock } from "../../../model/clock.ts";
import { ToolcribError } from "../../../model/errors.ts";
import { isJsonObject } from "../../../model/json.ts";
import { namedSession } from "../caller-session.ts";
import { checkInput } from "./check-input.ts";
import { approvalHandlers } from "./handlers/approvals.ts";
import { auditHandlers } from "./handlers/audit.ts";
import { catalogHandlers } from "./handlers/catalog.ts";
import { clientHandlers } from "./handlers/clients.ts";
import { configHandlers } from "./handlers/config.ts";
import { overviewHandlers } from "./handlers/overview.ts";
import { pinHandlers } from "./handlers/pins.ts";
import { policyHandlers } from "./handlers/policy.ts";
import { serverHandlers } from "./handlers/servers.ts";
import { sessionHandlers } from "./handlers/sessions.ts";
import { skillHandlers } from "./handlers/skills.ts";
import { toolHandlers } from "./handlers/tools.ts";
import { OpenedSessions } from "./opened-sessions.ts";
import type { ApiParts, HandlerParts, Handlers, OperationContext } from "./operation.ts";
import { recordOf } from "./recorded-changes.ts";
import { scopeMissing } from "./scope-missing.ts";

const HANDLERS: Handlers = {
  ...overviewHandlers,
  ...serverHandlers,
  ...toolHandlers,
  ...catalogHandlers,
  ...skillHandlers,
  ...sessionHandlers,
  ...approvalHandlers,
  ...pinHandlers,
  ...policyHandlers,
  ...configHandlers,
  ...clientHandlers,
  ...auditHandlers,
};

/** What came from a tool went through the guard, and its data must not be changed once more. */
const AS_THEY_ARE: ReadonlySet<OperationName> = new Set(["callTool", "readResource"]);

/** Those whose input `session` is the one that they run in. */
const IN_SESSION: ReadonlySet<OperationName> = new Set<OperationName>([
  "listServers",
  "listTools",
  "callTool",
  "listResources",
  "readResource",
  "listPrompts",
  "explainPolicy",
]);

export class Operations {
  readonly #parts: HandlerParts;

  constructor(parts: ApiParts) {
    this.#parts = { ...parts, opened: new OpenedSessions(parts.hub, parts.clock ?? systemClock, parts) };
  }

  /** Ends the sessions that callers opened. */
  close(): void {
    this.#parts.opened.close();
  }

  static has(name: string): name is OperationName {
    return Object.hasOwn(OPERATIONS, name);
  }

  static scopeOf(name: OperationName): Scope {
    return OPERATIONS[name].scope;
  }

  /** Rejects with ToolcribError only. */
  async run(name: OperationName, input: unknown, context: OperationContext): Promise<unknown> {
    const scope = Operations.scopeOf(name);
    if (!context.caller.scopes.has(scope)) throw scopeMissing(scope);
    const output = await this.#handle(name, input, context);
    return AS_THEY_ARE.has(name) ? output : this.#masked(output);
  }

  async #handle<Name extends OperationName>(name: Name, input: unknown, context: OperationContext): Promise<unknown> {
    const checked = checkInput(name, input);
    const output = await HANDLERS[name](checked, this.#within(name, checked, context), this.#parts);
    const record = recordOf(name, checked, output, context);
    if (record !== undefined) this.#parts.hub.audit.note(record);
    return output;
  }

  #within(name: OperationName, input: object, context: OperationContext): OperationContext {
    if (!IN_SESSION.has(name) || !("session" in input) || typeof input.session !== "string") return context;
    const { hub, opened } = this.#parts;
    const session = namedSession(hub, context.caller, input.session);
    if (session === undefined) {
      throw new ToolcribError("not_found", `No session ${input.session} of this caller is open.`, {
        hint: "POST /api/v1/sessions opens one. It ends half an hour after its last use, or with its WebSocket.",
      });
    }
    opened.used(session);
    return { ...context, session };
  }

  /** A cursor is made of nothing secret, and half a cursor is none. */
  #masked(output: unknown): unknown {
    const masked = this.#parts.redactor.maskAll(output);
    if (!isJsonObject(output) || !isJsonObject(masked) || output["nextCursor"] === undefined) return masked;
    return { ...masked, nextCursor: output["nextCursor"] };
  }
}
