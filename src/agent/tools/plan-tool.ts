import type { Tool } from "../../model/tool.ts";
import type { PlanEntry } from "../events.ts";

export const PLAN_TOOL = "toolcrib_plan";

export const PRIORITIES = ["high", "medium", "low"] as const;
export const STATUSES = ["pending", "in_progress", "completed"] as const;

export function planTool(onPlan: (entries: readonly PlanEntry[]) => void): Tool {
  return {
    name: PLAN_TOOL,
    label: "Plan",
    description:
      "Keep a plan for work of several steps. Give the whole plan each time: it replaces the one before. The user sees it.",
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
              content: { type: "string", minLength: 1, description: "What is to be done, in a few words." },
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
      return { content: [{ type: "text", text: "The plan is shown to the user." }] };
    },
  };
}
