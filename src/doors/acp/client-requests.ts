/** Requests to the client: its capabilities, files, forms, and permission to run tools or use the model. */
import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import {
  type AgentContext,
  type CreateElicitationRequest,
  type InitializeRequest,
  methods,
  type PermissionOption,
  type ToolCallUpdate,
} from "@agentclientprotocol/sdk/unstable";
import type { SamplingQuestion } from "../../agent/agent-options.ts";
import { answerSampling } from "../../agent/answer-sampling.ts";
import type { ChatModel } from "../../agent/model/chat-model.ts";
import type { Hub } from "../../hub/hub.ts";
import type { AskAnswer, AskRequest } from "../../model/decision.ts";
import type { JsonObject } from "../../model/json.ts";
import type { ElicitationCallback } from "../../model/source.ts";
import { type Tool, ToolAuthorizationError, ToolInputError, type ToolResult } from "../../model/tool.ts";
import type { SessionOptions } from "../../sessions/session.ts";
import type { ToolCalls } from "./tool-calls.ts";
import { isReallyInside, type ProtectedPaths, type Workspace } from "./workspace.ts";

export interface ClientFeatures {
  readonly readsFiles: boolean;
  readonly writesFiles: boolean;
  /** Shows its user forms of servers. */
  readonly forms: boolean;
  /** Shows notices of its own accord. */
  readonly notices: boolean;
}

export const NO_FEATURES: ClientFeatures = { readsFiles: false, writesFiles: false, forms: false, notices: false };

export function clientFeatures({ clientCapabilities }: InitializeRequest): ClientFeatures {
  return {
    readsFiles: clientCapabilities?.fs?.readTextFile === true,
    writesFiles: clientCapabilities?.fs?.writeTextFile === true,
    forms: clientCapabilities?.elicitation?.form != null,
    notices: clientCapabilities?.session?.notices != null,
  };
}

interface ClientFilesOptions {
  readonly client: AgentContext;
  readonly sessionId: string;
  readonly offer: ClientFeatures;
  readonly workspace: Workspace;
  readonly guarded: ProtectedPaths;
}

/** Tools that read and write files through the client, which has unsaved changes and shows what is written. */
export function clientFileTools(options: ClientFilesOptions): Tool[] {
  const { readsFiles, writesFiles } = options.offer;
  return [...(readsFiles ? [readTool(options)] : []), ...(writesFiles ? [writeTool(options)] : [])];
}

const PATH = { type: "string", description: "Absolute, or relative to the working directory." };

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
      if (guarded.isOfHome(path)) throw new ToolAuthorizationError(`${path} belongs to Toolcrib.`);
      const { content } = await client.request(
        methods.client.fs.readTextFile,
        { sessionId, path, ...numberParam(params, "line"), ...numberParam(params, "limit") },
        cancelOptions(signal),
      );
      return textResult(content);
    },
  };
}

function writeTool({ client, sessionId, workspace, guarded }: ClientFilesOptions): Tool {
  return {
    name: "write_text_file",
    label: "Write file",
    description: "Writes a whole text file through the user's editor; creates it if it does not exist.",
    parameters: {
      type: "object",
      properties: { path: PATH, content: { type: "string", description: "The whole content of the file." } },
      required: ["path", "content"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    async execute(_id, params, signal) {
      const path = pathOf(params, workspace);
      if (guarded.decides(path)) {
        throw new ToolAuthorizationError(`${path} decides what Toolcrib can run; only the user can change it.`);
      }
      const { content } = params;
      if (typeof content !== "string") throw new ToolInputError("`content` must be a string.");
      await client.request(methods.client.fs.writeTextFile, { sessionId, path, content }, cancelOptions(signal));
      return textResult(`${path} is written.`);
    },
  };
}

function pathOf({ path }: JsonObject, workspace: Workspace): string {
  if (typeof path !== "string" || path === "") throw new ToolInputError("`path` must be a string.");
  const whole = resolve(workspace.cwd, path);
  if (!isReallyInside(whole, workspace)) {
    throw new ToolAuthorizationError(`${whole} is outside the working directory ${workspace.cwd}.`);
  }
  return whole;
}

function numberParam(params: JsonObject, key: "line" | "limit"): { line?: number; limit?: number } {
  const value = params[key];
  return typeof value === "number" ? { [key]: value } : {};
}

function cancelOptions(signal: AbortSignal | undefined): object {
  return signal === undefined ? {} : { cancellationSignal: signal, stopWaitingOnCancel: true };
}

function textResult(value: string): ToolResult {
  return { content: [{ type: "text", text: value }] };
}

/** Questions of MCP servers to the user, where the client has forms. */
export function elicitationCallback(client: AgentContext, sessionId: string): ElicitationCallback {
  return async (params, { server, signal }): Promise<JsonObject> => {
    const question = { ...params, mode: "form", sessionId, message: `${server}: ${String(params["message"])}` };
    const answer = await client.request(
      methods.client.elicitation.create,
      // A form of MCP is one of ACP; what a server wrote into it is the client's to judge.
      question as unknown as CreateElicitationRequest,
      { cancellationSignal: signal, stopWaitingOnCancel: true },
    );
    return { ...answer };
  };
}

interface PermissionContext {
  readonly toolCallId: string;
  readonly calls: ToolCalls;
  readonly signal: AbortSignal;
  /** Whether an approval ends with the session: the server is its own, or it does not decide for others. */
  readonly endsWithSession: boolean;
  /** The user ended the turn instead of answering. */
  cancelTurn(): void;
}

/** Asks the client's user to approve calls. */
export class PermissionRequests {
  readonly #client: AgentContext;
  readonly #sessionId: string;
  /** Tools that were refused for the rest of the session. */
  readonly #refused = new Set<string>();

  constructor(client: AgentContext, sessionId: string) {
    this.#client = client;
    this.#sessionId = sessionId;
  }

  /** Anything but an approval is a refusal, as is a client that cannot be asked. */
  async ask(request: AskRequest, { toolCallId, calls, ...asking }: PermissionContext): Promise<AskAnswer> {
    if (this.#refused.has(request.name)) return "no";
    const toolCall = await calls.asked(toolCallId, request, asking.signal);
    const answer = await this.#answer(request, toolCall, asking);
    await calls.answered(toolCallId, answer !== "no");
    return answer;
  }

  async #answer(
    request: AskRequest,
    toolCall: ToolCallUpdate,
    { signal, endsWithSession, cancelTurn }: Omit<PermissionContext, "toolCallId" | "calls">,
  ): Promise<AskAnswer> {
    const isForSession = endsWithSession || hasSessionRule(request);
    const { outcome } = await this.#client.request(
      methods.client.session.requestPermission,
      { sessionId: this.#sessionId, toolCall, options: permissionOptions(request, isForSession) },
      { cancellationSignal: signal, stopWaitingOnCancel: true },
    );
    if (outcome.outcome === "cancelled") {
      cancelTurn();
      return "no";
    }
    switch (outcome.optionId) {
      case "allow_once":
        return "once";
      case "allow_always":
        return isForSession ? "session" : "always";
      case "allow_always_values":
        return isForSession ? "no" : "always-values";
      case "allow_always_call":
        return isForSession ? "no" : "always-call";
      case "reject_always":
        this.#refused.add(request.name);
        return "no";
      default:
        return "no";
    }
  }
}

/** Whether a rule of the session, such as its mode, asked: that approval ends with the session. A rule of the config is changed there. */
function hasSessionRule({ rule, rules }: AskRequest): boolean {
  return rule.list !== "ask" || [rule, ...rules].some(({ level }) => level === "session");
}

/** The tool comes first of what lasts: clients with one key for "always" take the first of the kind. */
function permissionOptions({ lasting }: AskRequest, isForSession: boolean): PermissionOption[] {
  const always = (optionId: string, name: string): PermissionOption => ({ optionId, kind: "allow_always", name });
  const narrower: PermissionOption[] = [];
  if (!isForSession && lasting?.["always-values"] !== undefined)
    narrower.push(always("allow_always_values", "Always allow it with these values"));
  if (!isForSession && lasting?.["always-call"] !== undefined)
    narrower.push(always("allow_always_call", "Always allow exactly this call"));
  return [
    { optionId: "allow_once", kind: "allow_once", name: "Allow once" },
    always("allow_always", isForSession ? "Allow for this session" : "Always allow"),
    ...narrower,
    { optionId: "reject_once", kind: "reject_once", name: "Reject" },
    { optionId: "reject_always", kind: "reject_always", name: "Reject for this session" },
  ];
}

/** Servers that want to use the model: what the config says, with the user asked where it says so. */
interface SamplingContext {
  readonly client: AgentContext;
  readonly sessionId: string;
  readonly model: () => Promise<ChatModel>;
}

/** Without the option, servers are not offered sampling. */
export function samplingOptions(
  hub: Hub,
  { client, sessionId, model }: SamplingContext,
): Pick<SessionOptions, "onSample"> {
  const { sampling: mode, samplingTokens: maxTokens } = hub.config.config.agent;
  if (mode === "deny") return {};
  return { onSample: answerSampling({ model, mode, maxTokens, ask }) };

  async function ask({ server, params }: SamplingQuestion, signal: AbortSignal): Promise<boolean> {
    const toolCallId = `sampling_${randomUUID()}`;
    const title = `${server} wants to use the model`;
    const { outcome } = await client.request(
      methods.client.session.requestPermission,
      {
        sessionId,
        toolCall: { toolCallId, title, kind: "think", status: "pending", rawInput: params },
        options: [
          { optionId: "allow_once", kind: "allow_once", name: "Allow once" },
          { optionId: "reject_once", kind: "reject_once", name: "Reject" },
        ],
      },
      { cancellationSignal: signal, stopWaitingOnCancel: true },
    );
    return outcome.outcome === "selected" && outcome.optionId === "allow_once";
  }
}
