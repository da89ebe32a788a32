import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { invalidConfig, renderDiagnostic } from "../../config/diagnostics.ts";
import { readDialect } from "../../config/dialects/detect.ts";
import { addServer } from "../../config/edit-config.ts";
import { expandTilde, userHome } from "../../config/find-config.ts";
import { loadConfig } from "../../config/load-config.ts";
import { parseConfigText } from "../../config/read-document.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { Invocation } from "../command.ts";
import { showDiff, targetFile } from "../config-target.ts";
import { type ImportStep, planImport } from "../import-plan.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { args, cwd, env, flags, out } = invocation;
  const [named = ""] = args;
  const source = resolve(cwd, expandTilde(named, userHome(env)));
  const target = targetFile(invocation);
  if (source === target) throw new ToolcribError("invalid_arguments", `${source} is the config itself.`);

  const incoming = readServers(invocation, named, source);
  const onConflict = flags.has("force") ? "replace" : flags.has("rename") ? "rename" : "refuse";
  const steps = planImport(incoming, await serversOf(invocation, target), onConflict);
  assertNoConflict(steps, target);

  const facts = factsOf(steps, source);
  if (flags.has("dryRun")) {
    await showDryRun(invocation, steps, target, facts);
    return 0;
  }
  await write(steps, target);
  if (out.json) out.value({ ...facts, file: target });
  else show(out, steps, target);
  return 0;
}

/** Entries that cannot be read are told of and left out; a file without any that can is an error. */
function readServers({ out, env }: Invocation, named: string, source: string): ServerSpec[] {
  if (!existsSync(source)) {
    throw new ToolcribError("not_found", `There is no file ${source}.`, {
      hint: /^[a-z-]+$/.test(named)
        ? "Importing by a client's name is not built in this version; give its config file."
        : undefined,
    });
  }
  const document = parseConfigText(source, readFileSync(source, "utf8"));
  if (document.errors.length > 0) throw invalidConfig(document.errors);
  const { servers, roleServers, warnings, problems } = readDialect(document.value, {
    file: source,
    document,
    userHome: userHome(env),
  });
  if (servers.length === 0 && problems.length > 0) throw invalidConfig(problems);
  for (const diagnostic of [...document.warnings, ...warnings, ...problems]) out.warn(renderDiagnostic(diagnostic));
  for (const [role, theirs] of Object.entries(roleServers)) {
    out.warn(
      `${source}: servers of the agent ${role} alone are not imported: ${theirs.map(({ id }) => id).join(", ")}`,
    );
  }
  if (servers.length === 0) throw new ToolcribError("not_found", `${source} has no MCP servers.`);
  return servers;
}

async function serversOf({ cwd, env }: Invocation, target: string): Promise<readonly ServerSpec[]> {
  return existsSync(target) ? (await loadConfig({ file: target, cwd, env })).servers : [];
}

function assertNoConflict(steps: readonly ImportStep[], target: string): void {
  const taken = steps.filter((step) => step.action === "conflict").map((step) => step.id);
  if (taken.length === 0) return;
  throw new ToolcribError("conflict", `${target} has other servers of the same id: ${taken.join(", ")}`, {
    hint: "--force replaces them, --rename gives new ids. Nothing was imported.",
    details: { ids: taken },
  });
}

async function write(steps: readonly ImportStep[], target: string): Promise<void> {
  for (const { id, entry, action } of steps) {
    if (action !== "same") await addServer(target, id, entry, { replace: action === "replace" });
  }
}

/** Done for real on a copy, because one diff has to show all steps together. */
async function showDryRun(
  invocation: Invocation,
  steps: readonly ImportStep[],
  target: string,
  facts: object,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "toolcrib-dry-run-"));
  try {
    const copy = join(folder, basename(target));
    if (existsSync(target)) copyFileSync(target, copy);
    const before = existsSync(copy) ? readFileSync(copy, "utf8") : "";
    await write(steps, copy);
    const after = existsSync(copy) ? readFileSync(copy, "utf8") : "";
    showDiff(invocation, target, before, after, { ...facts });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Facts {
  readonly source: string;
  readonly added: readonly string[];
  readonly replaced: readonly string[];
  readonly renamed: readonly { from: string; to: string }[];
  readonly skipped: readonly string[];
}

function factsOf(steps: readonly ImportStep[], source: string): Facts {
  const ids = (action: ImportStep["action"]): string[] =>
    steps.filter((step) => step.action === action).map((step) => step.id);
  return {
    source,
    added: ids("add"),
    replaced: ids("replace"),
    renamed: steps.filter((step) => step.action === "rename").map(({ from, id }) => ({ from, to: id })),
    skipped: ids("same"),
  };
}

const WORDS = {
  add: "added",
  replace: "replaced",
  rename: "added",
  same: "is there already",
  conflict: "is taken",
} as const;

function show(out: Invocation["out"], steps: readonly ImportStep[], target: string): void {
  out.line(target);
  for (const { from, id, action } of steps) {
    out.line(`  ${id}  ${WORDS[action]}${from === id ? "" : ` (${from} in the file)`}`);
  }
}
