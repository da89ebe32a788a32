/** `allowed-tools` is a string or a list. What stands in brackets belongs to its tool: `Bash(git add:*)`. */
import type { Fields } from "./fields.ts";

export function readAllowedTools(fields: Fields): string[] {
  const value = fields.get("allowed-tools");
  if (typeof value === "string") return splitTools(value);
  return fields.list("allowed-tools").flatMap(splitTools);
}

/** Separated by blanks or commas outside of brackets. A bracket that is never closed ends with the text. */
export function splitTools(text: string): string[] {
  const tools: string[] = [];
  let depth = 0;
  let tool = "";
  for (const char of text) {
    if (depth === 0 && /[\s,]/.test(char)) {
      if (tool !== "") tools.push(tool);
      tool = "";
      continue;
    }
    if (char === "(") depth += 1;
    else if (char === ")") depth = Math.max(0, depth - 1);
    tool += char;
  }
  if (tool.trim() !== "") tools.push(tool.trim());
  return tools;
}
