/** Every operation of the contract: who may run it is checked, then what was sent; what comes out is masked. */
import { OPERATIONS, type OperationName } from "../../../contract/operations.ts";
import type { Scope } from "../../../model/caller.ts";
import { isJsonObject } from "../../../model/json.ts";
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
import type { ApiParts, Handlers, OperationContext } from "./operation.ts";
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

export class Operations {
  readonly #parts: ApiParts;

  constructor(parts: ApiParts) {
    this.#parts = parts;
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
    const output = await HANDLERS[name](checked, context, this.#parts);
    const record = recordOf(name, checked, output, context);
    if (record !== undefined) this.#parts.hub.audit.note(record);
    return output;
  }

  /** A cursor is made of nothing secret, and half a cursor is none. */
  #masked(output: unknown): unknown {
    const masked = this.#parts.redactor.maskAll(output);
    if (!isJsonObject(output) || !isJsonObject(masked) || output["nextCursor"] === undefined) return masked;
    return { ...masked, nextCursor: output["nextCursor"] };
  }
}
