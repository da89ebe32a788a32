/** Scans definitions: every model that is offered a tool reads its definition before any call. */
import type { Finding, FindingCode } from "../model/finding.ts";
import type { JsonObject } from "../model/json.ts";
import { showHidden } from "../base/visible-text.ts";
import { scanText, type Sensitivity, unreadable } from "./scan-text.ts";
import { type ContentOptions, type ScanContent, scanTexts, type TextFindings } from "./scan-texts.ts";

/**
 * Names the rules that definitions are scanned by. In a build it is the name of the file that this is part of, which has a hash
 * of all that it holds and imports; undefined where the sources run, which change at any time.
 */
export const SCANNER: string | undefined = /\/([^/]+-[\w-]{8}\.cjs)$/.exec(import.meta.url)?.[1];

export interface DefinitionFinding {
  /** Where in the definition, as keys joined by dots: `inputSchema.properties.note.description`. */
  readonly path: string;
  readonly finding: Finding;
}

/** A name is an identifier: whatever does not show, and whatever is a sentence, has no place in it. */
const HIDDEN_IN_NAME = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Variation_Selector}\u115f\u1160\u2800\u3164\uffa0]/u;

/** Deeper and larger than any real definition. */
const MAX_DEPTH = 64;
const MAX_UNITS = 256 * 1024;
/** Of a key in the path of a finding. */
const MAX_STEP_LENGTH = 80;
/** Too short for a phrase and nothing hidden in it: most keys, types and names. */
const HARMLESS = /^[\w.$-]{0,20}$/;

/**
 * Suspicious texts of one definition: of a tool, a prompt, a resource or a template. All strings and all keys are read,
 * also enum texts, defaults and examples, since all of them reach the model.
 */
export function scanDefinition(definition: JsonObject, sensitivity?: Sensitivity): DefinitionFinding[] {
  const read = textsOf(definition);
  return gradeDefinition(read, scanTexts(new Set(read.texts.map(readAs)), { place: "definition", sensitivity }));
}

/** The same with detectors, which take time. */
export async function detectInDefinition(
  scan: ScanContent,
  definition: JsonObject,
  options: Omit<ContentOptions, "place"> = {},
): Promise<DefinitionFinding[]> {
  const read = textsOf(definition);
  return gradeDefinition(read, await scan(new Set(read.texts.map(readAs)), { ...options, place: "definition" }));
}

function gradeDefinition({ texts, isWhole }: DefinitionTexts, found: TextFindings): DefinitionFinding[] {
  const findings: DefinitionFinding[] = [];
  for (const text of texts) {
    const raw = found.get(readAs(text)) ?? [];
    for (const finding of text.isName ? gradeName(text.text, raw) : gradeText(raw))
      findings.push({ path: text.path, finding });
  }
  if (!isWhole) findings.push({ path: "", finding: unreadable(UNREADABLE, 0, "definition") });
  return findings;
}

const UNREADABLE = "The definition is nested too deeply or is too large to be read.";

/** Scans the `instructions` of a server. */
export function scanInstructions(text: string, sensitivity?: Sensitivity): Finding[] {
  return gradeText(scanText(text, { place: "instructions", sensitivity }));
}

export async function detectInInstructions(
  scan: ScanContent,
  text: string,
  options: Omit<ContentOptions, "place"> = {},
): Promise<Finding[]> {
  return gradeText((await scan([text], { ...options, place: "instructions" })).get(text) ?? []);
}

/**
 * Definitions speak to the model by their nature ("you must call X first", "ask the user for the key"), so what is
 * only directed speech counts less than in a result.
 */
const EXPECTED = new Set<FindingCode>(["agent_directive", "tool_directive", "tool_call_forging", "exfiltration_link"]);

function gradeText(findings: readonly Finding[]): Finding[] {
  if (!findings.every(({ code }) => EXPECTED.has(code))) return [...findings];
  return findings.map((finding) => ({ ...finding, severity: finding.severity === "high" ? "medium" : "low" }));
}

function gradeName(name: string, found: readonly Finding[]): Finding[] {
  const excerpt = (): string => showHidden(name.slice(0, 160)).slice(0, 160);
  const findings = found.map((finding) => ({ ...finding, excerpt: excerpt() }));
  if (!HIDDEN_IN_NAME.test(name) || findings.some(({ code }) => code === "hidden_text")) return findings;
  return [...findings, { ...unreadable(excerpt(), name.length, "definition"), rules: ["hidden-in-name"] }];
}

interface Text {
  readonly path: string;
  readonly text: string;
  readonly isName: boolean;
}

/** The words of a name are joined by separators. */
function readAs({ text, isName }: Text): string {
  return isName ? text.replaceAll(/[_.-]+/g, " ") : text;
}

interface DefinitionTexts {
  readonly texts: readonly Text[];
  readonly isWhole: boolean;
}

function textsOf(definition: JsonObject): DefinitionTexts {
  const texts: Text[] = [];
  let units = 0;
  // An explicit stack, since the server chooses the depth.
  const pending: { value: unknown; path: string; key: string; depth: number }[] = [
    { value: definition, path: "", key: "", depth: 0 },
  ];
  const add = (text: string, path: string, isName: boolean): void => {
    // Each costs a little, however short it is.
    units += text.length + 8;
    if (units <= MAX_UNITS && !HARMLESS.test(text)) texts.push({ path, text, isName });
  };
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, path, key, depth } = next;
    if (depth > MAX_DEPTH || units > MAX_UNITS) return { texts, isWhole: false };
    if (typeof value === "string") {
      add(value, path, key === "name");
    } else if (Array.isArray(value)) {
      units += value.length;
      if (units > MAX_UNITS) continue;
      for (const [index, element] of value.entries()) {
        pending.push({ value: element, path: `${path}[${index}]`, key: "", depth: depth + 1 });
      }
    } else if (typeof value === "object" && value !== null) {
      for (const [name, member] of Object.entries(value)) {
        const step = name.slice(0, MAX_STEP_LENGTH);
        const memberPath = path === "" ? step : `${path}.${step}`;
        // Any key can be a parameter's name: of `properties`, `$defs`, `patternProperties`, or of an example.
        add(name, memberPath, true);
        pending.push({ value: member, path: memberPath, key: name, depth: depth + 1 });
      }
    }
  }
  return { texts, isWhole: units <= MAX_UNITS };
}
