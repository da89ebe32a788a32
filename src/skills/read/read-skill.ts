/** Reads a skill, from its folder or from the bytes of its SKILL.md alone. */
import { basename, resolve } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type {
  RequiredServer,
  Skill,
  SkillDialect,
  SkillFacts,
  SkillFile,
  SkillInstallStep,
  SkillNeeds,
} from "../../model/skill.ts";
import { platformName } from "../needs.ts";
import { parseRequiredServers } from "../servers/parse-required-servers.ts";
import { bytesDigest, skillDigest } from "../verified-files.ts";
import { camelCase, FrontmatterFields } from "./frontmatter-fields.ts";
import { findFrontmatter, type SourceLocations } from "./frontmatter.ts";
import { abbreviate, ReadWarnings } from "./read-warnings.ts";
import { parseJson5 } from "./repair-frontmatter.ts";
import { listFolder } from "./skill-folder.ts";
import { decodeText } from "./split-frontmatter.ts";

interface ReadLimits {
  /** Size of SKILL.md; 1 MiB by default. */
  readonly bytes?: number;
  /** Number of files; 1,000 by default. */
  readonly files?: number;
  /** Size of all files together; 64 MiB by default. */
  readonly totalBytes?: number;
}

const LIMITS = { bytes: 1024 * 1024, files: 1000, totalBytes: 64 * 1024 * 1024 } as const;

/** Rejects with ToolcribError (invalid_config, too_large, not_found) when the folder cannot be used at all. */
export async function readSkill(dir: string, limits: ReadLimits = {}): Promise<Skill> {
  const warnings = new ReadWarnings();
  const { dir: folder, files, main } = await listFolder(resolve(dir), { ...LIMITS, ...limits }, warnings);
  return Object.freeze({ dir: folder, ...buildSkill(main, basename(folder), files, warnings) });
}

/** SKILL.md alone, without its folder. `dirName` is the name if the text has none. */
export function parseSkill(bytes: Uint8Array, dirName: string): Omit<Skill, "dir"> {
  if (bytes.length > LIMITS.bytes) {
    throw new ToolcribError("too_large", `SKILL.md of "${dirName}" has more than ${LIMITS.bytes} bytes.`);
  }
  const file = { path: "SKILL.md", size: bytes.length, digest: bytesDigest(bytes), executable: false };
  return buildSkill(bytes, dirName, [file], new ReadWarnings());
}

function buildSkill(
  bytes: Uint8Array,
  dirName: string,
  files: readonly SkillFile[],
  warnings: ReadWarnings,
): Omit<Skill, "dir"> {
  const front = findFrontmatter(decodeText(bytes, warnings), warnings);
  const body = front.body.includes("\r") ? front.body.replaceAll("\r\n", "\n") : front.body;
  const frontmatter = front.value;
  const top = new FrontmatterFields(frontmatter, [], front, warnings);
  warnRenamed(top);
  const metadata = readMetadata(top, frontmatter, front);
  const inside = new FrontmatterFields(metadata, top.pathOf("metadata"), front, warnings);
  const block = vendorBlock(metadata, top, front, warnings);
  const name = readName(top, dirName, warnings);
  const description = readDescription(top, body, front.bodyLine, warnings);
  if (description === undefined) {
    throw new ToolcribError("invalid_config", `The skill "${name}" has neither a description nor a body.`, {
      hint: "Add a description to the frontmatter of SKILL.md and write the instructions below it.",
    });
  }
  return deepFreeze({
    name,
    description,
    dialect: dialectOf(top, block !== undefined),
    version: top.label("version") ?? inside.label("version"),
    author: top.has("author") ? readAuthor(top) : readAuthor(inside),
    license: top.text("license"),
    compatibility: top.text("compatibility"),
    homepage: block?.text("homepage") ?? top.text("homepage") ?? inside.label("homepage"),
    emoji: block?.text("emoji") ?? top.text("emoji") ?? inside.label("emoji"),
    argumentHint: readArgumentHint(top),
    primaryEnv: block?.text("primary-env"),
    skillKey: block?.text("skill-key"),
    allowedTools: readAllowedTools(top),
    disableModelInvocation: top.flag("disable-model-invocation", false),
    userInvocable: top.flag("user-invocable", true),
    dispatch: readDispatch(top),
    always: block?.flag("always", false) ?? false,
    needs: readNeeds(top, block),
    install: readInstallSteps(block),
    servers: readServers(top.has("requires-mcp-servers") ? top : inside, front, warnings),
    extensions: readExtensions(top),
    frontmatter,
    files,
    digest: skillDigest(files),
    warnings: warnings.sorted(),
    body,
    bytes,
  });
}

function readServers(fields: FrontmatterFields, places: SourceLocations, warnings: ReadWarnings): RequiredServer[] {
  const value = fields.get("requires-mcp-servers");
  if (value === undefined || value === null) return [];
  const path = fields.pathOf("requires-mcp-servers");
  return parseRequiredServers(value, (code, message, below) => {
    warnings.add(code, message, places.lineOf([...path, ...below]));
  });
}

function warnRenamed(top: FrontmatterFields): void {
  for (const name of KNOWN_KEYS) {
    const written = top.writtenAs(name);
    if (written !== undefined && written !== name) {
      top.warn(name, "KEY_RENAMED", `"${abbreviate(written)}" is read as "${name}".`);
    }
  }
}

/** An author may be an object with a name, as in package.json. */
function readAuthor(fields: FrontmatterFields): string | undefined {
  return fields.object("author")?.label("name") ?? fields.label("author");
}

/** `argument-hint: [file]` is a list to YAML and text to all other readers. */
function readArgumentHint(top: FrontmatterFields): string | undefined {
  const value = top.get("argument-hint");
  if (!Array.isArray(value)) return top.text("argument-hint");
  return `[${value.map((item) => (typeof item === "string" ? item : JSON.stringify(item))).join(", ")}]`;
}

// The name becomes part of paths, URIs and tool names, so it is made safe.

const MAX_NAME_LENGTH = 64;
/** Wider than the standard's a-z, 0-9 and hyphens: harmless names are kept as written. */
const SAFE_NAME = /^[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}._-]{0,62}[\p{L}\p{M}\p{N}_-])?$/u;

function readName(fields: FrontmatterFields, dirName: string, warnings: ReadWarnings): string {
  const written = fields.text("name");
  const name = written === undefined ? "" : safeName(written);
  if (name !== "") {
    if (name !== written)
      fields.warn("name", "NAME_CHANGED", `The name "${abbreviate(written)}" is read as "${name}".`);
    return name;
  }
  const fallback = safeName(dirName) || "skill";
  const why = written === undefined ? "There is no name" : `"${abbreviate(written)}" cannot be a name`;
  warnings.add(
    "NAME_FROM_FOLDER",
    `${why}; the folder's name is used: "${fallback}".`,
    fields.has("name") ? fields.lineOf("name") : 1,
  );
  return fallback;
}

function safeName(text: string): string {
  // Nearly all are of the standard's form.
  if (/^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/.test(text)) return text;
  const plain = text.normalize("NFC").trim();
  if (SAFE_NAME.test(plain)) return plain;
  const letters = plain.toLowerCase().replaceAll(/[^\p{L}\p{M}\p{N}._]+/gu, "-");
  return cutTo(letters, MAX_NAME_LENGTH).replaceAll(/^[^\p{L}\p{N}]+|[^\p{L}\p{M}\p{N}]+$/gu, "");
}

function cutTo(text: string, length: number): string {
  return text.length <= length
    ? text
    : text
        .slice(0, length)
        .toWellFormed()
        .replace(/\uFFFD$/, "");
}

// The description; without one, the first words of the body.

const MAX_DESCRIPTION_LENGTH = 1024;

/** @returns undefined if neither the frontmatter nor the body says anything. */
function readDescription(
  fields: FrontmatterFields,
  body: string,
  bodyLine: number,
  warnings: ReadWarnings,
): string | undefined {
  const written = fields.text("description");
  if (written !== undefined) return written;
  const found = firstWords(body);
  if (found === undefined) return undefined;
  const line = bodyLine + found.index;
  warnings.add("DESCRIPTION_FROM_BODY", `There is no description; the text of line ${line} is used.`, line);
  return found.text;
}

/** The first paragraph of prose, else the first heading, else the first line with anything in it. */
function firstWords(body: string): { text: string; index: number } | undefined {
  const lines = body.split("\n");
  let heading: { text: string; index: number } | undefined;
  let other: { text: string; index: number } | undefined;
  let fence = "";
  let comment = false;
  const start = afterProgram(lines);
  for (const [index, line] of lines.entries()) {
    if (index < start) continue;
    const text = line.trim();
    const mark = /^(?:`{3,}|~{3,})/.exec(text)?.[0];
    if (comment) {
      comment = !text.includes("-->");
    } else if (mark !== undefined && (fence === "" || text.startsWith(fence))) {
      fence = fence === "" ? mark : "";
    } else if (fence === "" && text.startsWith("<!--")) {
      comment = !text.includes("-->");
    } else if (/[\p{L}\p{N}]/u.test(text)) {
      if (fence === "" && text.startsWith("#")) heading ??= { text: cleanProse(text.replace(/^#+/, "")), index };
      else if (fence === "" && isProse(text)) return { text: cleanProse(paragraph(lines, index)), index };
      else other ??= { text: cleanProse(text), index };
    }
  }
  return heading ?? other;
}

/** Frontmatter in a programming language stays in the body, but its words describe nothing. */
function afterProgram(lines: readonly string[]): number {
  const first = lines.findIndex((line) => line.trim() !== "");
  if (!/^\s*-{3,}[ \t]*[A-Za-z]/.test(lines[first] ?? "")) return 0;
  return lines.findIndex((line, index) => index > first && /^---\s*$/.test(line)) + 1;
}

function isProse(text: string): boolean {
  return !/^(?:[-*+] |\d+[.)] |\||<|!\[|\[!\[|[-=_*]{3,}$)/.test(text);
}

function paragraph(lines: readonly string[], start: number): string {
  const rest = lines.slice(start);
  const end = rest.findIndex((line) => line.trim() === "" || /^\s*(?:#|```|~~~)/.test(line));
  return rest.slice(0, end === -1 ? undefined : end).join(" ");
}

function cleanProse(text: string): string {
  const plain = text
    .replaceAll(/(^|\s)>\s?/g, "$1")
    .replaceAll("**", "")
    .replaceAll(/\s+/g, " ")
    .trim();
  return plain.length <= MAX_DESCRIPTION_LENGTH
    ? plain
    : `${plain.slice(0, MAX_DESCRIPTION_LENGTH - 1).toWellFormed()}…`;
}

function readAllowedTools(fields: FrontmatterFields): string[] {
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

// The dialect shows in keys that only one of them has.

const OPENCLAW_KEYS = ["command-dispatch", "command-tool", "command-arg-mode"] as const;

const STANDARD_KEYS = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"] as const;
/** Toolcrib's own. */
const OWN_KEYS = ["requires-mcp-servers"] as const;

/** Keys that Claude Code adds to the standard. Those that a Skill has no field for are kept as extensions. */
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
const KNOWN_KEYS: readonly string[] = [...STANDARD_KEYS, ...CLAUDE_KEYS, ...OPENCLAW_KEYS, ...OWN_KEYS];

export function dialectOf(top: FrontmatterFields, hasVendorBlock: boolean): SkillDialect {
  if (hasVendorBlock || OPENCLAW_KEYS.some((key) => top.has(key))) return "openclaw";
  if ([...CLAUDE_KEYS, ...EXTENSION_KEYS].some((key) => top.has(key))) return "claude-code";
  return "agent-skills";
}

function readExtensions(top: FrontmatterFields): JsonObject {
  const extensions: JsonObject = {};
  for (const key of EXTENSION_KEYS) {
    const value = top.get(key);
    if (value !== undefined && value !== null) extensions[camelCase(key)] = value;
  }
  return extensions;
}

// `metadata` is a map, or JSON or JSON5 in a string; a vendor's block inside takes the same forms.

/** The present name first: it wins where a file has several for the sake of old readers. */
const VENDORS = ["openclaw", "clawdbot", "clawdis", "moltbot"] as const;

/** @returns The map; one that was parsed from text replaces the text in `frontmatter`. */
export function readMetadata(fields: FrontmatterFields, frontmatter: JsonObject, places: SourceLocations): JsonObject {
  const value = fields.get("metadata");
  if (value === undefined || value === null) return {};
  const [key = "metadata"] = fields.pathOf("metadata");
  if (isJsonObject(value)) {
    const meant = hasOddKeys(value) ? parseJson5Object(places.textOf([key]) ?? "") : undefined;
    if (meant === undefined) return value;
    fields.warn("metadata", "METADATA_JSON5", "metadata is JSON5, which YAML reads differently; it is read as JSON5.");
    frontmatter[key] = meant;
    return meant;
  }
  const parsed = typeof value === "string" ? parseJson5Object(value) : undefined;
  if (parsed !== undefined) {
    fields.warn("metadata", "METADATA_AS_TEXT", "metadata is JSON in a string; it should be a map.");
    frontmatter[key] = parsed;
    return parsed;
  }
  if (Array.isArray(value) && value.every(isJsonObject)) {
    const merged: JsonObject = Object.fromEntries(value.flatMap((item) => Object.entries(item)));
    fields.warn("metadata", "WRONG_TYPE", "metadata must be a map, not a list; its items are merged.");
    frontmatter[key] = merged;
    return merged;
  }
  fields.warn("metadata", "METADATA_UNREADABLE", `metadata must be a map; "${abbreviate(value)}" is ignored.`);
  return {};
}

/** The block of OpenClaw, under whichever of its names. */
function vendorBlock(
  metadata: JsonObject,
  fields: FrontmatterFields,
  places: SourceLocations,
  warnings: ReadWarnings,
): FrontmatterFields | undefined {
  for (const vendor of VENDORS) {
    const value = metadata[vendor];
    if (value === undefined || value === null) continue;
    const path = [...fields.pathOf("metadata"), vendor];
    if (isJsonObject(value)) return new FrontmatterFields(value, path, places, warnings);
    // The standard allows only text in metadata, so a block as text is right and no repair.
    const parsed = typeof value === "string" ? parseJson5Object(value) : undefined;
    if (parsed !== undefined) return new FrontmatterFields(parsed, path, places, warnings);
    const line = places.lineOf(path);
    warnings.add(
      "VENDOR_BLOCK_UNREADABLE",
      `metadata.${vendor} must be a map; "${abbreviate(value)}" is ignored.`,
      line,
    );
  }
  return undefined;
}

/** To YAML a comment of JSON5 is part of the next key, and so is `a:"b"` without a blank. */
function hasOddKeys(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, item]) => /^\/[/*]|:["'[{\w]/.test(key) || hasOddKeys(item));
}

function parseJson5Object(text: string): JsonObject | undefined {
  const value = parseJson5(text);
  return isJsonObject(value) ? value : undefined;
}

// OpenClaw's block: needs, install steps and dispatch to a tool. Nothing in it is ever run.

/** Words for "anywhere". */
const ANY_PLATFORM = new Set(["all", "any", "*"]);

/** @param block Absent where the file has no vendor's block; some put the same keys at the top. */
function readNeeds(top: FrontmatterFields, block: FrontmatterFields | undefined): SkillNeeds {
  const outer = top.object("requires");
  // In the block itself `config` is something else: example settings.
  const required = [block?.object("requires"), outer].filter((place) => place !== undefined);
  const places = block === undefined ? required : [block, ...required];
  const list = (name: string): string[] => unique(places.flatMap((place) => place.list(name)));
  const os = [...list("os"), ...top.list("os")].map((name) => platformName(name));
  const bins = unique([...list("bins"), ...(outer === undefined ? top.list("bins") : [])]);
  return {
    bins,
    anyBins: list("any-bins"),
    env: list("env"),
    config: unique(required.flatMap((place) => place.list("config"))),
    os: os.some((name) => ANY_PLATFORM.has(name)) ? [] : unique(os),
  };
}

function readInstallSteps(block: FrontmatterFields | undefined): SkillInstallStep[] {
  const value = block?.get("install");
  if (block === undefined || value === undefined || value === null) return [];
  const items = Array.isArray(value) ? value : [value];
  return items.flatMap((item): SkillInstallStep[] => {
    if (typeof item === "string" && item.trim() !== "") return [{ kind: "text", bins: [], step: { text: item } }];
    if (!isJsonObject(item)) {
      block.warn("install", "WRONG_TYPE", "A step of install must be an object; other values are ignored.");
      return [];
    }
    const { kind, id, label, bins } = item;
    return [
      {
        kind: typeof kind === "string" ? kind : typeof id === "string" ? id : "unknown",
        label: typeof label === "string" ? label : undefined,
        bins: Array.isArray(bins) ? bins.filter((bin) => typeof bin === "string") : [],
        step: item,
      },
    ];
  });
}

function readDispatch(top: FrontmatterFields): SkillFacts["dispatch"] {
  if (!top.has("command-dispatch")) return undefined;
  const kind = top.label("command-dispatch");
  if (kind?.toLowerCase() !== "tool") {
    top.warn("command-dispatch", "DISPATCH_UNKNOWN", 'command-dispatch supports only "tool"; it is ignored.');
    return undefined;
  }
  const tool = top.text("command-tool");
  if (tool === undefined) {
    top.warn("command-dispatch", "DISPATCH_WITHOUT_TOOL", "command-dispatch needs a command-tool; it is ignored.");
    return undefined;
  }
  const mode = top.text("command-arg-mode") ?? "raw";
  if (mode !== "raw") {
    top.warn("command-arg-mode", "DISPATCH_UNKNOWN", 'command-arg-mode supports only "raw", which is used.');
  }
  return { tool, argMode: "raw" };
}

function unique(list: readonly string[]): string[] {
  return [...new Set(list)];
}

/** Freezes a value of plain objects and lists through and through. Byte arrays cannot be frozen and are passed by. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const key in value) deepFreeze(value[key]);
  return value;
}
