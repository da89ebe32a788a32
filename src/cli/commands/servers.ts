/** `toolcrib add`, `remove`, `enable` and `disable`: edit the servers of the config. */
import { dirname, resolve } from "node:path";
import { ConfigDocument, renderDiagnostic } from "../../config/config-document.ts";
import { serverWarnings } from "../../config/config-rules.ts";
import { addServer, type EditResult, removeServer, setEnabled } from "../../config/edit-config.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import { type ServerEntryInput, ServerEntrySchema } from "../../model/server-spec.ts";
import { recoverInterruptedInstall } from "../command-config.ts";
import type { Invocation } from "../command.ts";
import { editServerEntry, findEditTarget, showEdit } from "../config-target.ts";
import { LOCAL_SOURCE } from "../../model/capability.ts";
import type { Output } from "../output.ts";
import { counted } from "../table.ts";
import type { TriedServer } from "./test.ts";

export async function runAdd(invocation: Invocation): Promise<number> {
  const { args, flags } = invocation;
  const [id = ""] = args;
  if (id === LOCAL_SOURCE) {
    throw new ToolcribError("invalid_arguments", `The id "${id}" is reserved for in-process tools.`, {
      hint: "Choose another id.",
    });
  }
  await recoverInterruptedInstall(invocation);
  const { file, renew } = await findEditTarget(invocation);
  const entry = withFolder(entryFrom(invocation), file, invocation.cwd);
  const replace = flags.has("force");
  const result = await addServer(file, id, entry, { replace, dryRun: flags.has("dryRun") }).catch((error: unknown) => {
    throw withForceHint(error);
  });
  if (!flags.has("dryRun")) await renew(result);
  warnAboutEntry(invocation.out, file, result.after, id);
  if (flags.has("dryRun") || flags.has("disabled") || !flags.has("test")) {
    showEdit(invocation, id, file, "Added", result);
    return 0;
  }
  const { out } = invocation;
  if (!out.json) showEdit(invocation, id, file, "Added", result);
  // Loaded here, because an edit needs no hub.
  const { tryServer } = await import("./test.ts");
  const tried = await tryServer(invocation, id);
  if (out.json) out.value({ id, file, changed: result.before !== result.after, test: tried });
  else showTried(invocation, id, tried);
  return 0;
}

/** The server stays in the config either way: what it lacks may come later. */
function showTried({ out }: Invocation, id: string, tried: TriedServer): void {
  if (tried.ok) {
    out.line(`It works: ${counted(tried.tools, "tool")}, ${tried.ms} ms. To see them: toolcrib list ${id}`);
    return;
  }
  const { message, hint } = tried.error;
  out.warn(`${id} does not work yet: ${message}`);
  if (hint !== undefined) out.note(`  ${hint}`);
  out.note(`To try again: toolcrib test ${id}. To remove it: toolcrib remove ${id}`);
}

/** A relative path in the command refers to the working directory, even if the config is elsewhere. */
function withFolder(entry: ServerEntryInput, file: string, cwd: string): ServerEntryInput {
  const words = [entry.command ?? "", ...(entry.args ?? [])];
  const isRelative = words.some((word) => /^\.{1,2}(?:[\\/]|$)/.test(word));
  return entry.cwd !== undefined || !isRelative || dirname(file) === resolve(cwd)
    ? entry
    : { ...entry, cwd: resolve(cwd) };
}

function withForceHint(error: unknown): unknown {
  if (!(error instanceof ToolcribError) || error.code !== "conflict") return error;
  return new ToolcribError("conflict", error.message, {
    hint: `${error.hint ?? ""} Use --force to replace it.`.trim(),
  });
}

function entryFrom({ args, flags, dashes, cwd }: Invocation): ServerEntryInput {
  const [, ...target] = args;
  const env = pairs(flags.list("env"), parseVariable);
  const headers = pairs(flags.list("header"), parseHeader);
  const transport = flags.text("transport");
  const folder = flags.text("cwd");
  return {
    ...targetEntry(target, dashes),
    ...(env === undefined ? {} : { env }),
    ...(headers === undefined ? {} : { headers }),
    ...(folder === undefined ? {} : { cwd: resolve(cwd, folder) }),
    // addServer refuses other values.
    ...(transport === undefined ? {} : { transport: transport as "stdio" | "http" | "sse" }),
    ...(flags.has("disabled") ? { enabled: false } : {}),
  };
}

function targetEntry(target: readonly string[], dashes: boolean): ServerEntryInput {
  const [first, ...rest] = target;
  if (first !== undefined && rest.length === 0 && looksLikeUrl(first)) return { url: first };
  if (first !== undefined && dashes) return rest.length === 0 ? { command: first } : { command: first, args: rest };
  throw new ToolcribError("invalid_arguments", "Pass a URL, or -- followed by a command.", {
    hint: "Example: toolcrib add files -- npx -y @modelcontextprotocol/server-filesystem .",
  });
}

/** A reference may replace the whole URL. */
function looksLikeUrl(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text) || text.startsWith("${");
}

type Pair = readonly [string, string];

function pairs(typed: readonly string[], parse: (text: string) => Pair): Record<string, string> | undefined {
  return typed.length === 0 ? undefined : Object.fromEntries(typed.map(parse));
}

/** `K=V`; `K` alone refers to the variable of that name. */
function parseVariable(text: string): Pair {
  const at = text.indexOf("=");
  const name = at === -1 ? text : text.slice(0, at);
  if (!/^[A-Za-z_][A-Za-z0-9_.-]*$/.test(name)) throw badPair("--env", "NAME=value");
  return [name, at === -1 ? `\${${name}}` : text.slice(at + 1)];
}

/** `K: V` as in HTTP, or `K=V`. */
function parseHeader(text: string): Pair {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*[:=]\s*(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw badPair("--header", '"Name: value"');
  return [name, value];
}

/** Does not repeat the input, which may be a secret. */
function badPair(option: string, form: string): ToolcribError {
  return new ToolcribError("invalid_arguments", `${option} takes ${form}.`);
}

/** Warns about problems in the new entry, such as a credential in plain text. */
function warnAboutEntry(out: Output, file: string, text: string, id: string): void {
  const document = ConfigDocument.parse(file, text);
  const servers = isJsonObject(document.value) ? document.value["mcpServers"] : undefined;
  const entry = ServerEntrySchema.safeParse(isJsonObject(servers) ? servers[id] : undefined).data;
  if (entry === undefined) return;
  for (const warning of serverWarnings(document, ["mcpServers", id], entry)) out.warn(renderDiagnostic(warning));
}

export async function runRemove(invocation: Invocation): Promise<number> {
  const [id = ""] = invocation.args;
  const dryRun = invocation.flags.has("dryRun");
  const edit = (target: string): Promise<EditResult> => removeServer(target, id, { dryRun });
  const { file, result } = await editServerEntry(invocation, id, edit, null);
  showEdit(invocation, id, file, "Removed", result);
  return 0;
}

export function runEnable(invocation: Invocation): Promise<number> {
  return switchServer(invocation, "enabled");
}

export function runDisable(invocation: Invocation): Promise<number> {
  return switchServer(invocation, "disabled");
}

async function switchServer(invocation: Invocation, to: "enabled" | "disabled"): Promise<number> {
  const [id = ""] = invocation.args;
  const dryRun = invocation.flags.has("dryRun");
  const edit = (target: string): Promise<EditResult> => setEnabled(target, id, to === "enabled", { dryRun });
  // A missing key means enabled.
  const updates = { enabled: to === "enabled" ? null : false };
  const { file, result } = await editServerEntry(invocation, id, edit, updates);
  showEdit(invocation, id, file, to === "enabled" ? "Enabled" : "Disabled", result);
  return 0;
}
