/** `toolcrib override <tool>`: opens the definition that callers see in an editor, and writes what was changed as an override. */
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { isDeepStrictEqual } from "node:util";
import { shapeDefinition } from "../../catalog/overrides.ts";
import { ConfigDocument, invalidConfigError } from "../../config/config-document.ts";
import { type EditResult, setOverride } from "../../config/edit-config.ts";
import { originalOf, type ToolCapability } from "../../model/capability.ts";
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { LoadedConfig } from "../../model/loaded-config.ts";
import type { ToolDefinition } from "../../model/protocol.ts";
import { type ToolOverride, ToolOverrideSchema } from "../../model/server-spec.ts";
import type { Invocation } from "../command.ts";
import { editServerEntry, findEditTarget, showEdit } from "../config-target.ts";
import { withHub } from "../running-hub.ts";

/** A tool and the override of one place: of its server, a role or a view. */
interface Editing {
  readonly name: string;
  readonly server: string;
  /** The key of the override, and the name that another one would replace. */
  readonly key: string;
  /** Without the override of this place. */
  readonly base: ToolDefinition;
  readonly override: ToolOverride;
  /** Where it is in the config. */
  readonly owner: readonly string[];
}

export async function run(invocation: Invocation): Promise<number> {
  const { flags, out } = invocation;
  const editing = await findTool(invocation);
  if (flags.has("show")) return show(invocation, editing);
  const override = flags.has("reset") ? {} : overrideFrom(editing, await editedDocument(invocation, editing));
  const { misfit } = shapeDefinition(editing.base, override);
  if (misfit !== undefined) {
    throw new ToolcribError("invalid_arguments", `The override does not fit ${editing.name}: ${misfit}.`);
  }
  if (isDeepStrictEqual(override, editing.override)) {
    if (out.json) out.value({ id: editing.name, changed: false });
    else out.line(`Nothing to change: ${editing.name} stays as it is.`);
    return 0;
  }
  const { file, result } = await write(invocation, editing, override);
  showEdit(
    invocation,
    editing.name,
    file,
    Object.keys(override).length === 0 ? "Removed the override of" : "Overrode",
    result,
  );
  return 0;
}

async function findTool(invocation: Invocation): Promise<Editing> {
  const [name = ""] = invocation.args;
  const { flags } = invocation;
  const [role, view] = [flags.text("role"), flags.text("view")];
  if (role !== undefined && view !== undefined)
    throw new ToolcribError("invalid_arguments", "--role and --view cannot be used together.");
  let editing: Editing | undefined;
  await withHub(invocation, async (running) => {
    const { hub } = running;
    running.connectAuto();
    const find = (): ToolCapability | undefined => {
      const { tools } = hub.internals.catalog();
      return tools.find((tool) => tool.name === name) ?? tools.find(({ shape }) => shape?.original.name === name);
    };
    const tool = await running.until(find);
    if (tool === undefined) throw hub.internals.missing(running.session, name);
    editing = editingOf(tool, hub.config, role, view);
    return 0;
  });
  if (editing === undefined) throw new ToolcribError("cancelled", "The command was interrupted.");
  return editing;
}

function editingOf(tool: ToolCapability, { config, servers }: LoadedConfig, role?: string, view?: string): Editing {
  const { name, origin } = tool;
  const server = origin.source;
  const [group, of] = role === undefined ? (["views", view] as const) : (["roles", role] as const);
  if (of !== undefined) {
    const entry = Object.hasOwn(config[group], of) ? config[group][of] : undefined;
    const noun = group === "views" ? "view" : "role";
    if (entry === undefined) throw new ToolcribError("not_found", `There is no ${noun} "${of}" in the config.`);
    const override = entry.overrides?.[name] ?? {};
    return { name, server, key: name, base: tool.definition, override, owner: [group, of] };
  }
  const spec = servers.find(({ id }) => id === server);
  if (spec === undefined) {
    throw new ToolcribError("invalid_arguments", `${name} is not a tool of a server.`, {
      hint: "Override it for a role or a view: --role, --view.",
    });
  }
  const owned = spec.replaces === undefined ? undefined : spec.roles?.[0];
  const owner = owned === undefined ? ["mcpServers", server] : ["roles", owned, "mcpServers", spec.replaces ?? server];
  const override = spec.overrides?.[origin.name] ?? {};
  return { name, server, key: origin.name, base: originalOf(tool).definition, override, owner };
}

function show({ out }: Invocation, { name, server, key, base, override }: Editing): number {
  const { definition, misfit } = shapeDefinition(base, override);
  if (out.json) {
    out.value({ name, server, tool: key, override, effective: definition, original: base, misfit: misfit ?? null });
    return 0;
  }
  if (misfit !== undefined) out.warn(`The override does not fit, so the tool is held: ${misfit}.`);
  for (const [title, value] of [
    [`${name}, as callers see it`, definition],
    ["The original", base],
    ["The override", override],
  ] as const) {
    out.line(out.paint("bold", title));
    out.line(JSON.stringify(value, undefined, 2));
    out.line("");
  }
  return 0;
}

/** The definition as people edit it: every parameter with its text and default, and what an override can add. */
export function editableDefinition({ key, base, override }: Pick<Editing, "key" | "base" | "override">): JsonObject {
  const { title, description, annotations } = shapeDefinition(base, { ...override, parameters: {} }).definition;
  const parameters = Object.entries(propertiesOf(base)).map(([name, schema]) => {
    const { description: text, default: preset } = isJsonObject(schema) ? schema : {};
    const own = override.parameters?.[name];
    if (own?.fixed !== undefined) return [name, { fixed: own.fixed }] as const;
    const shown = { description: own?.description ?? text, default: own?.default ?? preset };
    return [name, Object.fromEntries(Object.entries(shown).filter(([, value]) => value !== undefined))] as const;
  });
  return {
    name: override.name ?? key,
    ...(title === undefined ? {} : { title }),
    description: description ?? "",
    annotations: annotations ?? {},
    hidden: override.hidden ?? false,
    parameters: Object.fromEntries(parameters),
    output: { drop: override.output?.drop ?? [] },
  };
}

/** The override that makes the base what was edited. */
export function overrideFrom({ key, base }: Pick<Editing, "key" | "base">, edited: JsonObject): ToolOverride {
  const { name, title, description, annotations, hidden, parameters, output, ...unknown } = edited;
  const drop = isJsonObject(output) ? output["drop"] : output;
  const isNew = (value: unknown, before: unknown): boolean =>
    value !== undefined && value !== "" && !isDeepStrictEqual(value, before);
  const hints = changedKeys(annotations, base.annotations ?? {}, isNew);
  const known = propertiesOf(base);
  const ofParameters = Object.entries(isJsonObject(parameters) ? parameters : {}).flatMap(([parameter, entry]) => {
    const before = isJsonObject(known[parameter]) ? known[parameter] : {};
    if (isJsonObject(entry) && entry["fixed"] !== undefined) return [[parameter, { fixed: entry["fixed"] }] as const];
    const changed = changedKeys(entry, before, isNew);
    return Object.keys(changed).length === 0 ? [] : [[parameter, changed] as const];
  });
  const override = {
    ...unknown,
    ...(isNew(name, key) ? { name } : {}),
    ...(isNew(title, base.title) ? { title } : {}),
    ...(isNew(description, base.description) ? { description } : {}),
    ...(Object.keys(hints).length === 0 ? {} : { annotations: hints }),
    ...(hidden === undefined || hidden === false ? {} : { hidden }),
    ...(ofParameters.length === 0 ? {} : { parameters: Object.fromEntries(ofParameters) }),
    ...(drop === undefined || (Array.isArray(drop) && drop.length === 0) ? {} : { output: { drop } }),
  };
  const { data, error } = ToolOverrideSchema.safeParse(override);
  if (data !== undefined) return data;
  const problems = error.issues.map(({ path, message }) => `${path.join(".") || "the definition"}: ${message}`);
  throw new ToolcribError("invalid_arguments", `The edited definition cannot be used. ${problems.join("; ")}`);
}

function changedKeys(
  edited: unknown,
  before: JsonObject,
  isNew: (value: unknown, before: unknown) => boolean,
): JsonObject {
  const entries = isJsonObject(edited) ? Object.entries(edited) : [];
  return Object.fromEntries(entries.filter(([key, value]) => isNew(value, before[key])));
}

function propertiesOf({ inputSchema }: ToolDefinition): JsonObject {
  return isJsonObject(inputSchema["properties"]) ? inputSchema["properties"] : {};
}

async function editedDocument(invocation: Invocation, editing: Editing): Promise<JsonObject> {
  const given = invocation.flags.text("file");
  if (given === "-") return parsed("stdin", await readAll(invocation.stdin));
  if (given !== undefined) {
    const file = resolve(invocation.cwd, given);
    return parsed(file, await readFile(file, "utf8").catch((cause: unknown) => unreadable(file, cause)));
  }
  const dir = await mkdtemp(join(tmpdir(), "toolcrib-override-"));
  const file = join(dir, `${editing.name}.jsonc`);
  try {
    await writeFile(file, documentText(editing), { mode: 0o600 });
    await openEditor(invocation, file);
    return parsed(file, await readFile(file, "utf8"));
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

function unreadable(file: string, cause: unknown): never {
  throw new ToolcribError("invalid_arguments", `${file} cannot be read.`, { cause });
}

function documentText(editing: Editing): string {
  return [
    `// ${editing.name}, as callers see it. Change what you like, save, and close the editor.`,
    '// Of a parameter: "description", "default", or "fixed" alone, which callers neither see nor set.',
    '// "output": { "drop": ["debug", "items[*].body"] } leaves fields out of results.',
    JSON.stringify(editableDefinition(editing), undefined, 2),
    "",
  ].join("\n");
}

function parsed(file: string, text: string): JsonObject {
  const { value, errors } = ConfigDocument.parse(file, text);
  if (errors.length > 0) throw invalidConfigError(errors);
  if (isJsonObject(value)) return value;
  throw new ToolcribError("invalid_arguments", `${file} has no JSON object.`);
}

/** `$VISUAL` and `$EDITOR` may have options of their own, so a shell reads them. */
async function openEditor({ env }: Invocation, file: string): Promise<void> {
  const editor = env["VISUAL"] || env["EDITOR"] || (process.platform === "win32" ? "notepad" : "vi");
  const path = process.platform === "win32" ? `"${file}"` : `'${file.replaceAll("'", `'\\''`)}'`;
  const child = spawn(`${editor} ${path}`, { shell: true, stdio: "inherit", env });
  const code = await new Promise<number | null>((done, fail) => {
    child.once("error", fail);
    child.once("exit", done);
  });
  if (code === 0) return;
  throw new ToolcribError("cancelled", `The editor ended with ${code ?? "a signal"}; nothing was changed.`, {
    hint: "Set $EDITOR, or pass the edited definition with --file.",
  });
}

async function write(
  invocation: Invocation,
  { server, key, owner }: Editing,
  override: ToolOverride,
): Promise<{ file: string; result: EditResult }> {
  const dryRun = invocation.flags.has("dryRun");
  const value = Object.keys(override).length === 0 ? undefined : override;
  const edit = (file: string): Promise<EditResult> => setOverride(file, owner, key, value, { dryRun });
  if (owner[0] === "mcpServers")
    return editServerEntry(invocation, server, edit, { overrides: { [key]: value ?? null } });
  const { file, renew } = await findEditTarget(invocation);
  const result = await edit(file);
  if (!dryRun) await renew(result);
  return { file, result };
}
