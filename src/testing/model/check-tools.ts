/** Whether a provider would take the tools that it is offered. */
import type { OfferedTool } from "./model-request.ts";

export type ToolProblem =
  | { readonly kind: "name" | "doubled"; readonly index: number; readonly name: string }
  /** The root of the schema: `found` is its `type`. */
  | { readonly kind: "root"; readonly index: number; readonly name: string; readonly found: string };

export function checkTools(tools: readonly OfferedTool[], pattern: RegExp): ToolProblem | undefined {
  const seen = new Set<string>();
  for (const [index, { name, inputSchema }] of tools.entries()) {
    if (!pattern.test(name)) return { kind: "name", index, name };
    if (seen.has(name)) return { kind: "doubled", index, name };
    seen.add(name);
    if (inputSchema["type"] !== "object")
      return { kind: "root", index, name, found: JSON.stringify(inputSchema["type"] ?? null) };
  }
  return undefined;
}
