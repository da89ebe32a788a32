/** Checks tools when they are registered, with messages for the person who wrote them. */
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject } from "../model/json.ts";
import type { Tool } from "../model/tool.ts";
import { checkUntrustedSchema, isUntrustedSchema } from "./untrusted-schemas.ts";
import { compileSchema } from "./validator.ts";

const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
const RESERVED = /^(skill__|toolcrib_)/;

export function checkToolShape(tool: unknown): asserts tool is Tool {
  if (!isJsonObject(tool))
    throw invalidTool("a tool", `must be an object, found ${tool === null ? "null" : typeof tool}`);
  const { name, label, description, execute, annotations, ownerOnly } = tool;
  if (typeof name !== "string") throw invalidTool("a tool", "needs a name that is a string");
  const who = `the tool "${name}"`;
  if (!NAME.test(name)) {
    throw invalidTool(who, "has a name that is not usable", "A name is a letter and up to 63 letters, digits, _ or -.");
  }
  if (label !== undefined && typeof label !== "string") throw invalidTool(who, "has a label that is not a string");
  if (typeof description !== "string") throw invalidTool(who, "needs a description that is a string");
  if (typeof execute !== "function") throw invalidTool(who, "needs execute to be a function");
  if (ownerOnly !== undefined && typeof ownerOnly !== "boolean") {
    throw invalidTool(who, "has an ownerOnly that is neither true nor false");
  }
  if (annotations !== undefined && !isJsonObject(annotations)) {
    throw invalidTool(who, "has annotations that are not an object");
  }
}

/** Apart from the shape, because Toolcrib's own tools are mirrored into registries like those of MCP servers. */
export function checkNotReserved({ name }: Tool): void {
  if (!RESERVED.test(name)) return;
  const hint = "Names that begin with skill__ or toolcrib_ are reserved for Toolcrib.";
  throw invalidTool(`the tool "${name}"`, "has a reserved name", hint);
}

/** Apart from the shape, because tools of MCP servers are checked by their servers, with whatever validator those have. */
export function checkParameters(tool: Tool): void {
  checkType(tool);
  if (isUntrustedSchema(tool.parameters)) return;
  try {
    compileSchema(tool.parameters);
  } catch (error) {
    throw invalidParameters(tool, error);
  }
}

/** For tools that a client sends, whose schemas may be hostile. Synchronous for small schemas. */
export function checkUntrustedParameters(tool: Tool): void | Promise<void> {
  checkType(tool);
  try {
    return checkUntrustedSchema(tool.parameters)?.catch((error: unknown) => {
      throw invalidParameters(tool, error);
    });
  } catch (error) {
    throw invalidParameters(tool, error);
  }
}

function checkType({ name, parameters }: Tool): void {
  const who = `the tool "${name}"`;
  if (!isJsonObject(parameters)) throw invalidTool(who, "needs parameters that are a JSON Schema object");
  const { type } = parameters;
  if (type === undefined || type === "object") return;
  const hint = 'Arguments are always an object: use "object".';
  throw invalidTool(who, `has parameters of type ${JSON.stringify(type)}`, hint);
}

function invalidParameters({ name }: Tool, error: unknown): ToolcribError {
  const who = `the tool "${name}"`;
  if (!(error instanceof ToolcribError)) {
    const problem = error instanceof Error ? error.message : String(error);
    return invalidTool(who, `has parameters that are not a valid JSON Schema: ${problem}`);
  }
  const { code, message, hint } = error;
  const text = `The parameters of ${who} cannot be used. ${message}`;
  return new ToolcribError(code, text, { hint, details: { subject: who }, cause: error });
}

function invalidTool(who: string, what: string, hint?: string): ToolcribError {
  const message = `${who[0]?.toUpperCase()}${who.slice(1)} ${what}.`;
  return new ToolcribError("invalid_arguments", message, { hint, details: { subject: who } });
}
