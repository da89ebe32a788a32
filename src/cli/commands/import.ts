import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { addServer, type EditResult } from "../../config/edit-config.ts";
import { loadConfig } from "../../config/load-config.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import { type ImportSource, readSource } from "../clients/import-source.ts";
import { adviceFor, type PlainCredential, plainCredentials } from "../clients/plain-credentials.ts";
import type { Invocation } from "../command.ts";
import { editTarget, showDiff } from "../config-target.ts";
import { type ImportStep, planImport } from "../import-plan.ts";
import { recoverKilled } from "../recover-install.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { args, flags, out } = invocation;
  await recoverKilled(invocation);
  const { file: target, renew } = await editTarget(invocation);
  const source = await readSource(invocation, args[0] ?? "");
  if (source.files.includes(target)) throw new ToolcribError("invalid_arguments", `${target} is the config itself.`);

  const onConflict = flags.has("force") ? "replace" : flags.has("rename") ? "rename" : "refuse";
  const steps = planImport(source.servers, await serversOf(invocation, target), onConflict);
  assertNoConflict(steps, target);

  const credentials = steps
    .filter(({ action }) => action !== "same")
    .flatMap(({ id, entry }) => plainCredentials(id, entry));
  for (const credential of credentials) out.warn(adviceFor(credential));
  const facts = factsOf(steps, source, credentials);
  if (flags.has("dryRun")) {
    await showDryRun(invocation, steps, target, facts);
    return 0;
  }
  for (const edit of await write(steps, target)) await renew(edit);
  if (out.json) out.value({ ...facts, file: target });
  else show(out, steps, target);
  return 0;
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

/** All steps as one edit, if there was anything to do. */
async function write(steps: readonly ImportStep[], target: string): Promise<EditResult[]> {
  const edits: EditResult[] = [];
  for (const { id, entry, action } of steps) {
    if (action !== "same") edits.push(await addServer(target, id, entry, { replace: action === "replace" }));
  }
  const [first, last] = [edits[0], edits.at(-1)];
  const isOne = edits.every(({ before }, index) => index === 0 || before === edits[index - 1]?.after);
  return first === undefined || last === undefined || !isOne ? [] : [{ before: first.before, after: last.after }];
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
  /** There already, by the ids that they have in the source. */
  readonly skipped: readonly string[];
  /** Entries of the source that start Toolcrib itself. */
  readonly leftOut: readonly string[];
  /** Credentials in plain text among what is brought in. */
  readonly credentials: readonly PlainCredential[];
}

function factsOf(
  steps: readonly ImportStep[],
  { name, own }: ImportSource,
  credentials: readonly PlainCredential[],
): Facts {
  const ids = (action: ImportStep["action"]): string[] =>
    steps.filter((step) => step.action === action).map((step) => step.id);
  return {
    source: name,
    added: ids("add"),
    replaced: ids("replace"),
    renamed: steps.filter((step) => step.action === "rename").map(({ from, id }) => ({ from, to: id })),
    skipped: steps.filter((step) => step.action === "same").map((step) => step.from),
    leftOut: own,
    credentials,
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
    out.line(`  ${id}  ${WORDS[action]}${from === id ? "" : ` (${from} there)`}`);
  }
}
