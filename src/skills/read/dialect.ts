/** Which dialect a file is written in, by the keys that only one of them has. */
import type { JsonObject } from "../../model/json.ts";
import type { SkillDialect } from "../../model/skill.ts";
import { camelCase, type Fields } from "./fields.ts";

const OPENCLAW_KEYS = ["command-dispatch", "command-tool", "command-arg-mode"] as const;

const STANDARD_KEYS = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"] as const;
/** Toolcrib's own. */
const OWN_KEYS = ["requires-mcp-servers"] as const;

/** Keys that Claude Code adds to the standard. Those without a field of their own in a Skill are kept as extensions. */
const CLAUDE_KEYS = ["disable-model-invocation", "user-invocable", "argument-hint"] as const;
const EXTENSION_KEYS = [
  "agent",
  "arguments",
  "context",
  "disallowed-tools",
  "effort",
  "hooks",
  "model",
  "paths",
  "shell",
  "when-to-use",
] as const;

/** Keys with one right spelling. Extensions are not among them: Claude Code itself spells some with underscores. */
export const KNOWN_KEYS: readonly string[] = [...STANDARD_KEYS, ...CLAUDE_KEYS, ...OPENCLAW_KEYS, ...OWN_KEYS];

export function dialectOf(top: Fields, hasVendorBlock: boolean): SkillDialect {
  if (hasVendorBlock || OPENCLAW_KEYS.some((key) => top.has(key))) return "openclaw";
  if ([...CLAUDE_KEYS, ...EXTENSION_KEYS].some((key) => top.has(key))) return "claude-code";
  return "agent-skills";
}

export function readExtensions(top: Fields): JsonObject {
  const extensions: JsonObject = {};
  for (const key of EXTENSION_KEYS) {
    const value = top.get(key);
    if (value !== undefined && value !== null) extensions[camelCase(key)] = value;
  }
  return extensions;
}
