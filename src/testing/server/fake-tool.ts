/** The tools of a fake server: functions. */
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { CallToolResult, ToolAnnotations, ToolDefinition } from "../../model/protocol.ts";

export interface FakeCall {
  /** Aborts when the client cancels the call or goes away. */
  readonly signal: AbortSignal;
  /** Of the HTTP request, with names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  progress(progress: number, total?: number, message?: string): void;
  /** Asks the user: MCP's `elicitation/create`. Rejects if the client does not answer. */
  elicit(params: JsonObject): Promise<JsonObject>;
  /** Asks for a model's answer: MCP's `sampling/createMessage`. */
  sample(params: JsonObject): Promise<JsonObject>;
}

/** A text, or a result as it stands. What it throws becomes an error result. */
export type RunFakeTool = (args: JsonObject, call: FakeCall) => FakeOutput | Promise<FakeOutput>;
type FakeOutput = string | CallToolResult;

export interface FakeTool {
  readonly run: RunFakeTool;
  readonly description?: string;
  /** Any object if absent. */
  readonly inputSchema?: JsonObject;
  readonly annotations?: ToolAnnotations;
}

export type FakeTools = Readonly<Record<string, FakeTool | RunFakeTool>>;

export function definitions(tools: FakeTools): ToolDefinition[] {
  return Object.entries(tools).map(([name, entry]) => {
    const { run: _, inputSchema = { type: "object" }, ...rest } = asTool(entry);
    return { name, inputSchema, ...rest };
  });
}

/** Undefined if there is no such tool. */
export async function runTool(
  tools: FakeTools,
  name: string,
  args: unknown,
  call: FakeCall,
): Promise<CallToolResult | undefined> {
  const entry = Object.hasOwn(tools, name) ? tools[name] : undefined;
  if (entry === undefined) return undefined;
  try {
    const output = await asTool(entry).run(isJsonObject(args) ? args : {}, call);
    return typeof output === "string" ? textResult(output) : output;
  } catch (thrown) {
    return { ...textResult(thrown instanceof Error ? thrown.message : String(thrown)), isError: true };
  }
}

function asTool(entry: FakeTool | RunFakeTool): FakeTool {
  return typeof entry === "function" ? { run: entry } : entry;
}

function textResult(text: string): CallToolResult {
  return { content: [{ type: "text", text }] };
}
