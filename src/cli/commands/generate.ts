/** `toolcrib generate`: a typed TypeScript client for chosen tools. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { nearMatches } from "../../base/near-matches.ts";
import { writeAtomic } from "../../files/write-atomic.ts";
import type { ToolCapability } from "../../model/capability.ts";
import { ToolcribError } from "../../model/errors.ts";
import { VERSION } from "../../model/version.ts";
import { compileGlob } from "../../policy/glob.ts";
import {
  docComment,
  pascalCase,
  propertyName,
  quoted,
  typeScriptType,
  uniqueName,
} from "../../schemas/typescript-types.ts";
import type { Invocation } from "../command.ts";
import { showAnswers, withHub } from "../running-hub.ts";
import { counted } from "../table.ts";

const HEADER = "// Made by toolcrib generate. Changes are lost when it runs again.";

export function run(invocation: Invocation): Promise<number> {
  const { args, flags, out, cwd } = invocation;
  const named = flags.text("out");
  const file = named === undefined ? undefined : resolve(cwd, named);
  return withHub(invocation, async (running) => {
    if (file !== undefined && !flags.has("force")) await assertOurs(file);
    running.connectAuto();
    await showAnswers(out, running);
    for (const { info, reason } of running.unreachable()) out.note(`not connected: ${info.id}: ${reason}`);
    const tools = choose(running.hub.view(running.session).tools, args);
    const text = clientFor(tools);
    if (file !== undefined) await writeAtomic(file, text, { mode: 0o644 });
    const names = tools.map(({ name }) => name);
    if (out.json) out.value(file === undefined ? { tools: names, text } : { file, tools: names });
    else if (file === undefined) out.line(text.trimEnd());
    else out.line(`Wrote ${counted(tools.length, "tool")} to ${file}`);
    return 0;
  });
}

async function assertOurs(file: string): Promise<void> {
  if (!existsSync(file) || (await readFile(file, "utf8")).startsWith(HEADER)) return;
  throw new ToolcribError("conflict", `${file} exists and was not made by toolcrib generate.`, {
    hint: "Use --force to overwrite it.",
  });
}

/** Those with a name that is given, or that matches a glob; all of them without any. */
function choose(tools: readonly ToolCapability[], wanted: readonly string[]): ToolCapability[] {
  if (tools.length === 0) throw new ToolcribError("not_found", "There are no tools.");
  const chosen = new Set<ToolCapability>();
  for (const each of wanted) {
    const glob = compileGlob(each);
    const found = tools.filter(({ name }) => name === each || glob(name));
    if (found.length === 0) {
      const near = nearMatches(
        each,
        tools.map(({ name }) => name),
      );
      throw new ToolcribError("not_found", `No tool matches ${JSON.stringify(each)}.`, {
        hint: near.length === 0 ? "Run toolcrib list to see all tools." : `Did you mean ${near.join(" or ")}?`,
      });
    }
    for (const tool of found) chosen.add(tool);
  }
  const all = wanted.length === 0 ? [...tools] : [...chosen];
  return all.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** The text of a module with `createTools`. The same tools give the same text. */
export function clientFor(tools: readonly ToolCapability[]): string {
  const types = new Set<string>(["Called", "CallOptions", "Hub", "ToolcribClient", "ToolFailure"]);
  const declarations: string[] = [];
  const declare = (wanted: string, schema: unknown): string => {
    const name = uniqueName(wanted, types);
    types.add(name);
    const { type, declarations: inner } = typeScriptType(schema, name);
    for (const each of inner) types.add(/^export type (\w+)/.exec(each)?.[1] ?? "");
    declarations.push(`export type ${name} = ${type};`, ...inner);
    return name;
  };
  const groups = [...Map.groupBy(tools, ({ origin }) => origin.source)].map(([source, group]) => {
    const methods = new Set<string>();
    const lines = group.map((tool) => {
      const { name, origin, definition } = tool;
      const method = uniqueName(camelCase(origin.name), methods);
      methods.add(method);
      const base = `${pascalCase(source)}${pascalCase(origin.name)}`;
      const input = declare(`${base}Input`, definition.inputSchema);
      const output =
        definition.outputSchema === undefined ? "undefined" : declare(`${base}Output`, definition.outputSchema);
      const { required } = definition.inputSchema;
      const needsArguments = Array.isArray(required) && required.length > 0;
      const given = needsArguments ? `args: ${input}` : `args: ${input} = {}`;
      return [
        `      ${docComment(definition.description ?? definition.title ?? name)}`,
        `      ${propertyName(method)}: (${given}, options?: CallOptions): Promise<Called<${output}>> =>`,
        `        call(caller, ${quoted(name)}, args, options),`,
      ].join("\n");
    });
    return `    ${propertyName(source)}: {\n${lines.join("\n")}\n    },`;
  });
  return `${HEADER}
// Toolcrib ${VERSION}; ${counted(tools.length, "tool")}.
${RUNTIME}
${declarations.join("\n\n")}

/** The tools, by server. Calls go to a hub in this process, or through a client of a running one. */
export function createTools(caller: Hub | ToolcribClient) {
  return {
${groups.join("\n")}
  };
}
`;
}

function camelCase(text: string): string {
  const name = pascalCase(text);
  return name.charAt(0).toLowerCase() + name.slice(1);
}

const RUNTIME = `import type { Hub } from "toolcrib";
import type { ToolcribClient } from "toolcrib/client";

export interface CallOptions {
  readonly signal?: AbortSignal;
}

/** The result of a tool. */
export interface Called<Structured> {
  /** As the tool's output schema declares it, which is not checked; undefined for a tool without one. */
  readonly structured: Structured;
  /** All text of the result, joined by line breaks. */
  readonly text: string;
  /** All of the result: text, images, audio, links. */
  readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
}

/** A call that was refused or failed, or an error that the tool reported. */
export class ToolFailure extends Error {
  /** A code of Toolcrib, such as \`denied\`; \`tool_error\` for an error of the tool itself. */
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = "ToolFailure";
    this.code = code;
  }
}

interface Answer {
  readonly content?: readonly { readonly type: string; readonly [key: string]: unknown }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}

async function call<Structured>(
  caller: Hub | ToolcribClient,
  name: string,
  args: object,
  { signal }: CallOptions = {},
): Promise<Called<Structured>> {
  const answer = await send(caller, name, { ...args }, signal);
  const content = answer.content ?? [];
  const text = content.flatMap((block) => (typeof block["text"] === "string" ? [block["text"]] : [])).join("\\n");
  if (answer.isError === true) throw new ToolFailure("tool_error", text);
  // As the tool's output schema declares it.
  return { structured: answer.structuredContent as Structured, text, content };
}

async function send(
  caller: Hub | ToolcribClient,
  name: string,
  args: Record<string, unknown>,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  if ("callTool" in caller) {
    const given = signal === undefined ? {} : { signal };
    return (await caller.callTool({ toolName: name, args }, given)) as Answer;
  }
  const outcome = await caller.call({ name, arguments: args, ...(signal === undefined ? {} : { signal }) });
  if (!outcome.ok) throw new ToolFailure(outcome.error.code, outcome.error.message);
  return outcome.result as Answer;
}
`;
