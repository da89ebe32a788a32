/** The agent's own tools. They belong to its session, and what they do for the model goes through the hub like every call. */
import { AsyncLocalStorage } from "node:async_hooks";
import { PLAN_TOOL, READ_TOOL, SKILL_TOOL } from "../../catalog/naming.ts";
import { unwrapUntrusted, wrappedModelContent, wrapUntrusted } from "../../guard/wrap-untrusted.ts";
import type { Hub } from "../../hub/hub.ts";
import type { SkillInfo } from "../../hub/skills/hub-skills.ts";
import { describeBlock, formatBytes, textBlock } from "../../model/content.ts";
import type { AskCallback } from "../../model/decision.ts";
import type { ContentBlock, ResourceContents } from "../../model/protocol.ts";
import { errorToolResult, type Tool, type ToolResult } from "../../model/tool.ts";
import type { SessionNotice } from "../../sessions/session-parts.ts";
import type { Session } from "../../sessions/session.ts";
import type { PlanEntry } from "../agent-options.ts";
import { activateSkill, describeAllowedTools } from "./session-rules.ts";

interface BuiltInOptions {
  readonly onPlan: (entries: readonly PlanEntry[]) => void;
  /** Called with what the user should know, such as a skill that leaves no tool. */
  readonly onNotice?: (notice: SessionNotice) => void;
}

interface BuiltInTools {
  options: BuiltInOptions;
  readonly plan: Tool;
  readonly read: Tool;
  skills: string | undefined;
}

const toolsBySession = new WeakMap<Session, BuiltInTools>();

/** Can be called again at any time after skills changed: only what is different is replaced. */
export function addBuiltInTools(hub: Hub, session: Session, options: BuiltInOptions): void {
  const known = toolsBySession.get(session) ?? createBuiltInTools(hub, session, options);
  known.options = options;
  const names = [...invocableSkills(hub, session).keys()];
  const skills = JSON.stringify(names);
  if (known.skills === skills) return;
  known.skills = skills;
  const onNotice = (notice: SessionNotice): void => known.options.onNotice?.(notice);
  const skill = names.length === 0 ? [] : [skillTool(hub, session, names, onNotice)];
  session.own.setTools("agent", [known.plan, ...skill, known.read]);
}

/** For a session that outlives its agent. */
export function removeBuiltInTools(session: Session): void {
  if (toolsBySession.delete(session)) session.own.setTools("agent", []);
}

function createBuiltInTools(hub: Hub, session: Session, options: BuiltInOptions): BuiltInTools {
  const made: BuiltInTools = {
    options,
    plan: planTool((entries) => made.options.onPlan(entries)),
    read: readTool(hub, session, () => hub.config.config.agent.resultBytes),
    skills: undefined,
  };
  toolsBySession.set(session, made);
  return made;
}

const PRIORITIES = ["high", "medium", "low"] as const;
const STATUSES = ["pending", "in_progress", "completed"] as const;

function planTool(onPlan: (entries: readonly PlanEntry[]) => void): Tool {
  return {
    name: PLAN_TOOL,
    label: "Plan",
    description:
      "Keep a plan for multi-step work. Pass the whole plan each time; it replaces the previous one. The user sees it.",
    parameters: {
      type: "object",
      properties: {
        entries: {
          type: "array",
          maxItems: 100,
          description: "The steps in order.",
          items: {
            type: "object",
            properties: {
              content: { type: "string", minLength: 1, description: "What to do, in a few words." },
              status: { type: "string", enum: [...STATUSES] },
              priority: { type: "string", enum: [...PRIORITIES], description: "medium if absent" },
            },
            required: ["content", "status"],
            additionalProperties: false,
          },
        },
      },
      required: ["entries"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
    async execute(_toolCallId, params) {
      // Arguments are checked against the schema before a tool runs.
      const given = params["entries"] as readonly Partial<PlanEntry>[];
      const entries = given.map(({ content = "", status = "pending", priority = "medium" }) => ({
        content,
        status,
        priority,
      }));
      onPlan(entries);
      return textResult("The plan is shown to the user.");
    },
  };
}

/** Skills by the name that a model uses: the skill's name, or its id if another skill has the same name. */
function invocableSkills(hub: Hub, session: Session): ReadonlyMap<string, SkillInfo> {
  const skills = hub.skills.list({ session }).filter(({ facts }) => !facts.disableModelInvocation);
  return byUniqueName(skills);
}

export function byUniqueName(skills: readonly SkillInfo[]): ReadonlyMap<string, SkillInfo> {
  const named = new Map<string, SkillInfo>();
  for (const skill of skills) named.set(named.has(skill.name) ? skill.id : skill.name, skill);
  return named;
}

/** One tool for all skills that a model may use, instead of a tool for each. */
function skillTool(
  hub: Hub,
  session: Session,
  names: readonly string[],
  onNotice: (notice: SessionNotice) => void,
): Tool {
  return {
    name: SKILL_TOOL,
    label: "Use skill",
    description:
      "Activate a skill: returns its instructions, which apply from then on. Do this before you start a task that matches the " +
      "description of a skill in <available_skills>.",
    parameters: {
      type: "object",
      properties: {
        name: { type: "string", enum: [...names] },
        arguments: { type: "string", description: "What to apply the skill to, if anything." },
      },
      required: ["name"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
    async execute(_toolCallId, params, signal, onUpdate) {
      const name = String(params["name"]);
      const given = typeof params["arguments"] === "string" ? params["arguments"] : "";
      const skill = invocableSkills(hub, session).get(name);
      const tool = skill && hub.skills.offersOf(skill.id, { session }).tool;
      if (skill === undefined || tool === undefined)
        return { ...textResult(`The skill "${name}" no longer exists.`), isError: true };
      if (given === "" && hub.skills.activeList(session).some(({ id }) => id === skill.id)) {
        return textResult(`The skill "${name}" is already active; its instructions are in the system prompt.`);
      }
      const outcome = await hub.call({
        session,
        name: tool.name,
        arguments: given === "" ? {} : { arguments: given },
        signal,
        audience: "agent",
        onAsk: askScope.getStore(),
        onProgress: onUpdate && (({ message = "" }) => onUpdate(textResult(message))),
      });
      if (!outcome.ok) {
        const { result, error } = outcome;
        const failed = errorToolResult(error);
        return result === undefined ? failed : { ...failed, content: wrappedModelContent(result) };
      }
      const content = wrappedModelContent(outcome.result);
      // A skill that dispatches to a tool does not become active.
      if (skill.facts.dispatch !== undefined) return { content };
      const notice = activateSkill(hub, session, skill);
      if (notice !== undefined) onNotice(notice);
      return { content: [...content, ...activationNote(skill, notice)] };
    },
  };
}

function activationNote(skill: SkillInfo, notice: SessionNotice | undefined): ContentBlock[] {
  if (notice !== undefined) return [textBlock(notice.message)];
  if (skill.facts.allowedTools.length === 0) return [];
  return [textBlock(`While this skill is active, only these tools can be used: ${describeAllowedTools(skill)}.`)];
}

function textResult(text: string): ToolResult {
  return { content: [textBlock(text)] };
}

/** Left for the boundary and the note around a piece. */
const FRAME_BYTES = 1024;

/**
 * Reads resources, and results that were too long to be given whole, in pieces.
 * @param resultBytes A piece stays below this size, so that it is not cut again.
 */
function readTool(hub: Hub, session: Session, resultBytes: () => number): Tool {
  return {
    name: READ_TOOL,
    label: "Read resource",
    description:
      "Read a resource by its URI: of a server, of a skill, or the full text of a truncated result (toolcrib://results/…). " +
      "Long text is returned in pieces; each piece says where the next one starts.",
    parameters: {
      type: "object",
      properties: {
        uri: { type: "string", minLength: 1 },
        offset: { type: "integer", minimum: 0, description: "Characters to skip; 0 if absent." },
        length: {
          type: "integer",
          minimum: 1,
          description: "Maximum number of characters to return; as many as fit if absent.",
        },
      },
      required: ["uri"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true },
    async execute(_toolCallId, params, signal) {
      const outcome = await hub.read({
        session,
        uri: String(params["uri"]),
        signal,
        audience: "agent",
        onAsk: askScope.getStore(),
      });
      if (!outcome.ok) return errorToolResult(outcome.error);
      const piece = {
        offset: Number(params["offset"] ?? 0),
        length: Number(params["length"] ?? Infinity),
        bytes: Math.max(FRAME_BYTES, resultBytes() - FRAME_BYTES),
      };
      const content = outcome.result.contents.flatMap((contents) => blocksOf(contents, piece));
      return { content: content.length > 0 ? content : [textBlock("(empty resource)")] };
    },
  };
}

interface Piece {
  readonly offset: number;
  readonly length: number;
  readonly bytes: number;
}

function blocksOf({ text, blob, mimeType, uri }: ResourceContents, piece: Piece): ContentBlock[] {
  if (typeof text === "string") return [textBlock(readPiece(text, piece))];
  if (typeof blob !== "string") return [];
  const media = { type: "image", data: blob, mimeType };
  if (typeof mimeType === "string" && mimeType.startsWith("image/")) return [media];
  const shown = describeBlock({ type: "resource", resource: { uri } });
  return [textBlock(`${shown} ${formatBytes(Buffer.byteLength(blob, "base64"))} of binary data.`)];
}

/** Untrusted text stays between its markers, whichever piece of it is read. */
function readPiece(whole: string, piece: Piece): string {
  const wrapped = unwrapUntrusted(whole);
  const text = wrapped?.text ?? whole;
  const cut = fittingPrefix(text.slice(piece.offset, piece.offset + piece.length).toWellFormed(), piece.bytes);
  const end = piece.offset + cut.length;
  const framed = wrapped === undefined ? cut : wrapUntrusted(cut, wrapped);
  if (piece.offset === 0 && end >= text.length) return framed;
  const rest = end < text.length ? ` Continue with offset ${end}.` : " This is the end.";
  return `${framed}\n[Characters ${Math.min(piece.offset, text.length)} to ${end} of ${text.length}.${rest}]`;
}

/** The longest prefix with at most this many bytes in UTF-8; never half a character. */
function fittingPrefix(text: string, bytes: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(Math.min(bytes, text.length * 3)));
  return text.slice(0, read);
}

/** Who approves calls that a built-in tool makes in turn: `execute` of a tool has no parameter for it. */
export const askScope = new AsyncLocalStorage<AskCallback | undefined>();
