/** What a server says about its own tools is read by every model that is offered them, before any call. */
import type { Finding, Severity } from "../../model/finding.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import { detect } from "../detect/detect.ts";
import { showHidden } from "../detect/show-hidden.ts";

export { showHidden };

export interface DefinitionFinding {
  /** Where in the definition, as keys joined by dots: `inputSchema.properties.note.description`. */
  readonly path: string;
  readonly finding: Finding;
}

/** A name is an identifier: whatever does not show, and whatever is a sentence, has no place in it. */
const HIDDEN_IN_NAME = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Variation_Selector}\u115f\u1160\u2800\u3164\uffa0]/u;
const NAME_KEYS = new Set(["name", "property"]);

/** Deeper and larger than any real definition. */
const DEEPEST = 64;
const MOST_TEXTS = 20_000;

/**
 * Suspicious texts of one definition: of a tool, a prompt, a resource or a template. All strings are read, also the
 * names of properties, enum texts, defaults and examples, since all of them reach the model.
 */
export function scanDefinition(definition: JsonObject): DefinitionFinding[] {
  const findings: DefinitionFinding[] = [];
  const { texts, isWhole } = textsOf(definition);
  for (const { path, text, isName } of texts) {
    for (const finding of isName ? scanName(text) : scanText(text)) findings.push({ path, finding });
  }
  if (!isWhole) findings.push({ path: "", finding: UNREADABLE });
  return findings;
}

/** What cannot be read to its end is not called clean. */
const UNREADABLE: Finding = {
  code: "hidden_text",
  severity: "medium",
  start: 0,
  end: 0,
  excerpt: "The definition is nested too deeply or has too many texts to be read.",
};

/** The `instructions` that a server gives for itself. */
export function scanInstructions(text: string): Finding[] {
  return scanText(text);
}

/**
 * Definitions speak to the model by their nature ("you must call X first", "ask the user for the key"), so what is
 * only directed speech counts less than in a result.
 */
const EXPECTED = new Set(["agent_directive", "tool_call_forging", "exfiltration_link"]);

function scanText(text: string): Finding[] {
  const findings = detect(text);
  const alone = findings.every(({ code }) => EXPECTED.has(code));
  return findings.map((finding) => (alone && EXPECTED.has(finding.code) ? lowered(finding) : finding));
}

function lowered(finding: Finding): Finding {
  const severity: Severity = finding.severity === "high" ? "medium" : "low";
  return { ...finding, severity };
}

function scanName(name: string): Finding[] {
  const hidden = HIDDEN_IN_NAME.exec(name);
  const findings = detect(name.replaceAll(/[_.-]+/g, " ")).map((finding) => ({
    ...finding,
    excerpt: showHidden(name).slice(0, 160),
  }));
  if (hidden === null || findings.some(({ code }) => code === "hidden_text")) return findings;
  return [
    ...findings,
    { code: "hidden_text", severity: "medium", start: 0, end: name.length, excerpt: showHidden(name).slice(0, 160) },
  ];
}

interface Text {
  readonly path: string;
  readonly text: string;
  readonly isName: boolean;
}

function textsOf(definition: JsonObject): { texts: Text[]; isWhole: boolean } {
  const texts: Text[] = [];
  // A stack of its own, since the depth is the server's choice.
  const pending: { value: unknown; path: string; key: string; depth: number }[] = [
    { value: definition, path: "", key: "", depth: 0 },
  ];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, path, key, depth } = next;
    if (depth > DEEPEST || texts.length > MOST_TEXTS) return { texts, isWhole: false };
    if (typeof value === "string") {
      texts.push({ path, text: value, isName: NAME_KEYS.has(key) });
    } else if (Array.isArray(value)) {
      for (const [index, element] of value.entries()) {
        pending.push({ value: element, path: `${path}[${index}]`, key: "", depth: depth + 1 });
      }
    } else if (isJsonObject(value)) {
      for (const [name, member] of Object.entries(value)) {
        const memberPath = path === "" ? name : `${path}.${name}`;
        // Keys of a schema's properties are the parameters' names.
        if (key === "properties") pending.push({ value: name, path: memberPath, key: "property", depth: depth + 1 });
        pending.push({ value: member, path: memberPath, key: name, depth: depth + 1 });
      }
    }
  }
  return { texts, isWhole: true };
}
