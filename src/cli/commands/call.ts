/** `toolcrib call`, `read` and `prompt`: use one capability, and show or save its result. */
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, extname, join, resolve, sep } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { findNearest } from "../../base/near-matches.ts";
import type { PromptCapability, ToolCapability } from "../../model/capability.ts";
import { describeBlock, formatBytes, resultText } from "../../model/content.ts";
import { type Outcome, ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ContentBlock, Progress, ResourceContents, Result } from "../../model/protocol.ts";
import { ARGUMENT_COLUMNS, describeArguments, exampleCall } from "../argument-schema.ts";
import { exitCodeOf, type Invocation, type RemoteFiles, type SavedPart } from "../command.ts";
import type { Output } from "../output.ts";
import { findCapability, findResource, type RunningHub, withHub } from "../running-hub.ts";
import {
  type Assignment,
  buildArguments,
  filesIn,
  invalidArguments,
  missingArguments,
  parseArgumentsObject,
  parseAssignment,
  type ReadFile,
} from "../tool-arguments.ts";

export async function runCall(invocation: Invocation): Promise<number> {
  const [name = "", ...typed] = invocation.args;
  const given = await readArguments(invocation, typed);
  const save = outputOf(invocation);
  return withHub(invocation, async (running) => {
    const { hub, signal } = running;
    const tool = await findCapability(running, name, (view) => view.tools);
    if (invocation.flags.has("schema")) {
      if (tool === undefined) throw hub.internals.missing(running.session, name);
      return showSchema(invocation, tool);
    }
    const outcome = await hub.call({
      session: running.session,
      name,
      arguments: fitToSchema(invocation, given, { name, tool }),
      signal,
      onProgress: progressLine(invocation),
    });
    return showOutcome(invocation, running, outcome, {
      show: (result) => invocation.out.line(resultText(result)),
      parts: (result) => partsOfBlocks(result.content, tool?.origin.name ?? name),
      save,
    });
  });
}

type Given = { readonly object: JsonObject } | { readonly assignments: readonly Assignment[] };

/** Read before any server is started, so that a typo fails at once. */
async function readArguments(invocation: Invocation, typed: readonly string[]): Promise<Given> {
  const { flags, stdin } = invocation;
  const json = flags.text("args");
  if (json === undefined) return { assignments: assignmentsOf(invocation, typed) };
  if (typed.length > 0) {
    throw new ToolcribError("invalid_arguments", "--args and key=value cannot be mixed.", {
      hint: "Put all arguments into the JSON object.",
    });
  }
  return { object: parseArgumentsObject(json === "-" ? await readAll(stdin) : json) };
}

function assignmentsOf({ cwd, attached }: Invocation, typed: readonly string[]): Assignment[] {
  const files = attached?.files;
  const read = files === undefined ? filesIn(cwd) : sentFile(files);
  return typed.map((each) => parseAssignment(each, read));
}

function sentFile(files: RemoteFiles): ReadFile {
  return (path) => {
    const bytes = files.read(path);
    if (bytes === undefined) throw new Error("not sent");
    return bytes;
  };
}

function fitToSchema(
  { out }: Invocation,
  given: Given,
  { name, tool }: { readonly name: string; readonly tool: ToolCapability | undefined },
): JsonObject {
  // Without a definition the hub refuses the call, so any arguments do.
  const schema = tool?.definition.inputSchema ?? {};
  if ("object" in given) {
    const problems = missingArguments(given.object, schema);
    if (problems.length > 0) throw invalidArguments(problems, name);
    return given.object;
  }
  const built = buildArguments(given.assignments, schema, name);
  for (const warning of built.warnings) out.warn(warning);
  return built.arguments;
}

function showSchema({ out }: Invocation, { name, definition }: ToolCapability): number {
  if (out.json) {
    out.value(definition.inputSchema);
    return 0;
  }
  out.line(out.paint("bold", name));
  if (definition.description !== undefined) out.line(definition.description.trimEnd());
  out.line("");
  const rows = describeArguments(definition.inputSchema);
  if (rows.length === 0) out.line("No arguments.");
  else out.table(ARGUMENT_COLUMNS, rows);
  out.line("");
  out.line(exampleCall(name, definition.inputSchema));
  return 0;
}

export async function runRead(invocation: Invocation): Promise<number> {
  const [uri = ""] = invocation.args;
  const save = outputOf(invocation);
  return withHub(invocation, async (running) => {
    await findResource(running, uri, (text) => invocation.out.note(text));
    const { hub, session, signal } = running;
    const outcome = await hub.read({ session, uri, signal });
    return showOutcome(invocation, running, outcome, {
      show: (result) => {
        // With --out the content goes to the file only.
        if (save === undefined) for (const contents of result.contents) invocation.out.line(contentsText(contents));
      },
      parts: (result) => partsOfContents(result.contents),
      save,
    });
  });
}

function contentsText({ uri, mimeType, text, blob }: ResourceContents): string {
  if (typeof text === "string") return text.replace(/\n$/, "");
  const size = typeof blob === "string" ? formatBytes(Buffer.byteLength(blob, "base64")) : "empty";
  return `[resource: ${uri}, ${mimeType ?? "unknown type"}, ${size}; save it with --out]`;
}

export async function runPrompt(invocation: Invocation): Promise<number> {
  const [name = "", ...typed] = invocation.args;
  const assignments = assignmentsOf(invocation, typed);
  const save = outputOf(invocation);
  return withHub(invocation, async (running) => {
    const { hub, session, signal } = running;
    const prompt = await findCapability(running, name, (view) => view.prompts);
    const outcome = await hub.prompt({ session, name, arguments: promptArguments(assignments, prompt), signal });
    return showOutcome(invocation, running, outcome, {
      show: (result) => {
        for (const { role, content } of result.messages) invocation.out.line(`${role}: ${describeBlock(content)}`);
      },
      parts: ({ messages }) =>
        partsOfBlocks(
          messages.map(({ content }) => content),
          prompt?.origin.name ?? name,
        ),
      save,
    });
  });
}

/** Prompts take only text. */
function promptArguments(
  assignments: readonly Assignment[],
  prompt: PromptCapability | undefined,
): Record<string, string> {
  const values = Object.fromEntries(assignments.map((assignment) => [assignment.key, assignmentText(assignment)]));
  const known = prompt?.definition.arguments;
  if (known === undefined) return values;
  const names = known.map((argument) => argument.name);
  const problems = [
    ...Object.keys(values)
      .filter((key) => !names.includes(key))
      .map((key) => unknownArgument(key, names)),
    ...known
      .filter((argument) => argument.required === true && !Object.hasOwn(values, argument.name))
      .map((argument) => `"${argument.name}" is missing`),
  ];
  if (problems.length === 0) return values;
  throw new ToolcribError("invalid_arguments", `The prompt's arguments: ${problems.join("; ")}.`, {
    hint: "Run toolcrib list --prompts --json to see them.",
    details: { problems },
  });
}

function unknownArgument(key: string, names: readonly string[]): string {
  const near = findNearest(key, names);
  if (near !== undefined) return `"${key}" is unknown; did you mean "${near}"`;
  return `"${key}" is unknown; ${names.length === 0 ? "the prompt takes no arguments" : `known arguments: ${names.join(", ")}`}`;
}

function assignmentText(assignment: Assignment): string {
  switch (assignment.kind) {
    case "text":
      return assignment.text;
    case "file":
      return assignment.bytes.toString("utf8");
    case "json":
      return typeof assignment.value === "string" ? assignment.value : JSON.stringify(assignment.value);
  }
}

/** `--out`, checked before the call. */
export function saveTarget({ flags, cwd }: Pick<Invocation, "flags" | "cwd">): SaveTarget | undefined {
  const path = flags.text("out");
  return path === undefined ? undefined : new SaveTarget(path, { cwd, force: flags.has("force") });
}

/** The same for a command that may run at a hub on another machine, which sends the content to the command's own. */
function outputOf(invocation: Invocation): Saves | undefined {
  const { attached, flags, out } = invocation;
  const files = attached?.files;
  if (files !== undefined) return flags.text("out") === undefined ? undefined : (parts) => files.save(parts);
  const target = saveTarget(invocation);
  return target && ((parts) => saveParts(target, parts, out));
}

type Saves = (parts: readonly SavedPart[]) => void;

export function saveParts(target: SaveTarget, parts: readonly SavedPart[], out: Pick<Output, "note">): void {
  const saved = target.save(parts);
  for (const path of saved) out.note(`saved ${path}`);
  if (saved.length === 0) out.note("The result has nothing to save.");
}

interface ResultView<R extends Result> {
  readonly show: (result: R) => void;
  readonly parts: (result: R) => SavedPart[];
  readonly save: Saves | undefined;
}

/** Prints the result or the error and returns the exit code. An error result of a tool is printed too. */
function showOutcome<R extends Result>(
  { out }: Invocation,
  running: RunningHub,
  outcome: Outcome<R>,
  { show, parts, save }: ResultView<R>,
): number {
  out.transient("");
  const { result } = outcome;
  if (result !== undefined) {
    if (out.json) out.value(result);
    else show(result);
    save?.(parts(result));
  }
  if (outcome.ok) return 0;
  // The hub only knows that the caller cancelled, not that the time was up.
  const error = outcome.error.code === "cancelled" ? (running.timedOut?.toObject() ?? outcome.error) : outcome.error;
  if (result === undefined) out.error(error);
  return exitCodeOf(error.code);
}

/** Shows progress on a terminal, in place. */
function progressLine({ out }: Invocation): (progress: Progress) => void {
  return ({ progress, total, message }) => {
    const share = total === undefined || total <= 0 ? String(progress) : `${Math.round((100 * progress) / total)} %`;
    out.transient([share, message].filter((part) => part !== undefined).join("  "));
  };
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  "image/jpeg": ".jpg",
  "image/svg+xml": ".svg",
  "image/x-icon": ".ico",
  "audio/mpeg": ".mp3",
  "audio/x-wav": ".wav",
  "audio/wave": ".wav",
  "audio/mp4": ".m4a",
  "text/plain": ".txt",
  "text/markdown": ".md",
  "text/javascript": ".js",
  "application/octet-stream": ".bin",
  "application/gzip": ".gz",
};

/** `.png` for `image/png`; `.bin` for unknown types. */
export function extensionForMimeType(mimeType: string): string {
  const plain = (mimeType.split(";")[0] ?? "").trim().toLowerCase();
  if (Object.hasOwn(EXTENSIONS, plain)) return EXTENSIONS[plain] ?? ".bin";
  const [, subtype = ""] = plain.split("/");
  const word = subtype.replace(/^.*\+/, "").replace(/^x-/, "");
  return /^[a-z0-9]{1,8}$/.test(word) ? `.${word}` : ".bin";
}

/** The parts of content blocks that are bytes: images, audio, embedded blobs. */
export function partsOfBlocks(blocks: readonly ContentBlock[], name: string): SavedPart[] {
  return blocks.flatMap((block) => {
    if (block.type === "resource" && isJsonObject(block["resource"])) {
      const { blob, mimeType } = block["resource"];
      return typeof blob === "string" ? [partOf(blob, mimeType, name)] : [];
    }
    const isBinary = (block.type === "image" || block.type === "audio") && typeof block["data"] === "string";
    return isBinary ? [partOf(String(block["data"]), block["mimeType"], name)] : [];
  });
}

/** All contents of a resource, including text. */
export function partsOfContents(contents: readonly ResourceContents[]): SavedPart[] {
  return contents.flatMap(({ uri, mimeType, text, blob }) => {
    const name = safeName(uri);
    if (typeof blob === "string") return [partOf(blob, mimeType, name)];
    if (typeof text !== "string") return [];
    return [{ bytes: Buffer.from(text, "utf8"), mimeType: mimeType ?? "text/plain", name }];
  });
}

function partOf(base64: string, mimeType: unknown, name: string): SavedPart {
  return {
    bytes: Buffer.from(base64, "base64"),
    mimeType: typeof mimeType === "string" ? mimeType : "application/octet-stream",
    name: safeName(name),
  };
}

/** Names come from servers, so only harmless characters are kept. */
function safeName(text: string): string {
  const last = text.split(/[\\/]/).findLast((part) => part !== "") ?? "";
  const safe = last
    .replace(/\.[A-Za-z0-9]{1,8}$/, "")
    .replace(/[^A-Za-z0-9_-]+/g, "-")
    .replace(/^-+|(?<!-)-+$/g, "");
  return safe.slice(0, 80) || "content";
}

/** The target of `--out`. Created before the call, so that an existing file is reported before it. */
export class SaveTarget {
  readonly #path: string;
  readonly #isFolder: boolean;
  readonly #force: boolean;

  constructor(path: string, options: { readonly cwd: string; readonly force: boolean }) {
    this.#path = resolve(options.cwd, path);
    this.#force = options.force;
    const isThere = existsSync(this.#path);
    this.#isFolder = isThere ? statSync(this.#path).isDirectory() : path.endsWith("/") || path.endsWith(sep);
    if (isThere && !this.#isFolder && !this.#force) {
      throw new ToolcribError("conflict", `${this.#path} already exists.`, { hint: "Use --force to overwrite it." });
    }
  }

  /** Writes the parts and returns their paths. */
  save(parts: readonly SavedPart[]): string[] {
    return parts.map((part, index) => {
      const path = this.#pathFor(part, parts.length === 1 ? undefined : index + 1);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, part.bytes, { flag: this.#force ? "w" : "wx" });
      return path;
    });
  }

  /** A single part goes to exactly the given file. In a folder, or with several parts, a free name is chosen. */
  #pathFor(part: SavedPart, number: number | undefined): string {
    const extension = extensionForMimeType(part.mimeType);
    // Here too: a hub on another machine names parts itself.
    if (this.#isFolder) return this.#free(join(this.#path, safeName(part.name)), extension, number);
    const own = extname(this.#path);
    if (own !== "" && number === undefined) return this.#path;
    return this.#free(join(dirname(this.#path), basename(this.#path, own)), extension, number);
  }

  #free(stem: string, extension: string, number: number | undefined): string {
    for (let next = number; ; next = (next ?? 1) + 1) {
      const path = `${stem}${next === undefined ? "" : `-${next}`}${extension}`;
      if (this.#force || !existsSync(path)) return path;
    }
  }
}
