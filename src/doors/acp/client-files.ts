/** Files through the client: it has what is not saved yet, and shows what is written. */
import { resolve } from "node:path";
import { type AgentContext, methods } from "@agentclientprotocol/sdk/unstable";
import type { JsonObject } from "../../model/json.ts";
import { type Tool, ToolAuthorizationError, ToolInputError, type ToolResult } from "../../model/tool.ts";
import type { ClientOffer } from "./client-offer.ts";
import type { GuardedPaths } from "./guarded-paths.ts";
import { isReallyInside, type Workspace } from "./workspace.ts";

export interface ClientFilesOptions {
  readonly client: AgentContext;
  readonly sessionId: string;
  readonly offer: ClientOffer;
  readonly workspace: Workspace;
  readonly guarded: GuardedPaths;
}

export function clientFileTools(options: ClientFilesOptions): Tool[] {
  const { readsFiles, writesFiles } = options.offer;
  return [...(readsFiles ? [readTool(options)] : []), ...(writesFiles ? [writeTool(options)] : [])];
}

const PATH = { type: "string", description: "Absolute, or from the working directory." };

function readTool({ client, sessionId, workspace, guarded }: ClientFilesOptions): Tool {
  return {
    name: "read_text_file",
    label: "Read file",
    description: "Reads a text file as the user's editor has it, with changes that are not saved yet.",
    parameters: {
      type: "object",
      properties: {
        path: PATH,
        line: { type: "integer", minimum: 1, description: "The first line; 1 if absent." },
        limit: { type: "integer", minimum: 1, description: "How many lines at most." },
      },
      required: ["path"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
    async execute(_id, params, signal) {
      const path = pathOf(params, workspace);
      if (guarded.isOfHome(path)) throw new ToolAuthorizationError(`${path} is Toolcrib's own.`);
      const { content } = await client.request(
        methods.client.fs.readTextFile,
        { sessionId, path, ...count(params, "line"), ...count(params, "limit") },
        waiting(signal),
      );
      return text(content);
    },
  };
}

function writeTool({ client, sessionId, workspace, guarded }: ClientFilesOptions): Tool {
  return {
    name: "write_text_file",
    label: "Write file",
    description: "Writes a whole text file through the user's editor; makes it if it is not there.",
    parameters: {
      type: "object",
      properties: { path: PATH, content: { type: "string", description: "All that will stand in it." } },
      required: ["path", "content"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    async execute(_id, params, signal) {
      const path = pathOf(params, workspace);
      if (guarded.decides(path)) {
        throw new ToolAuthorizationError(`${path} decides what Toolcrib may run; only the user changes it.`);
      }
      const { content } = params;
      if (typeof content !== "string") throw new ToolInputError("`content` must be a text.");
      await client.request(methods.client.fs.writeTextFile, { sessionId, path, content }, waiting(signal));
      return text(`${path} is written.`);
    },
  };
}

function pathOf({ path }: JsonObject, workspace: Workspace): string {
  if (typeof path !== "string" || path === "") throw new ToolInputError("`path` must be a text.");
  const whole = resolve(workspace.cwd, path);
  if (!isReallyInside(whole, workspace)) {
    throw new ToolAuthorizationError(`${whole} is outside the working directory ${workspace.cwd}.`);
  }
  return whole;
}

function count(params: JsonObject, key: "line" | "limit"): { line?: number; limit?: number } {
  const value = params[key];
  return typeof value === "number" ? { [key]: value } : {};
}

function waiting(signal: AbortSignal | undefined): object {
  return signal === undefined ? {} : { cancellationSignal: signal, stopWaitingOnCancel: true };
}

function text(value: string): ToolResult {
  return { content: [{ type: "text", text: value }] };
}
