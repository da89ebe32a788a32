/** `toolcrib skill install [source]` and `toolcrib skill remove <name>`. */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { createInterface } from "node:readline/promises";
import { withAbort } from "../../base/async.ts";
import { terminalLine } from "../../base/visible-text.ts";
import type { AgentClient } from "../../clients/agent-client.ts";
import { clientById } from "../../clients/clients.ts";
import { renderDiagnostic } from "../../config/config-document.ts";
import { loadConfig } from "../../config/load-config.ts";
import { showHidden } from "../../base/visible-text.ts";
import {
  applyInstall,
  type FileChange,
  type InstallChoices,
  type InstallPreview,
  type InstallReport,
  previewInstall,
} from "../../hub/install/apply-install.ts";
import { createInstallContext, type InstallContext, templateVariables } from "../../hub/install/install-context.ts";
import { lockFileIn } from "../../hub/install/installed-skills.ts";
import {
  type CheckedEntry,
  checkNewEntries,
  renderEntryFinding,
  serversNeededError,
} from "../../hub/install/new-servers.ts";
import {
  declaredSkills,
  type InstallPlan,
  nearestPackage,
  planInstall,
  withoutClientServers,
  type WantedSource,
} from "../../hub/install/plan-install.ts";
import { planRemoval, type RemovalPlan, type RemovalReport, removeSkill } from "../../hub/install/remove-skill.ts";
import {
  type AskForValue,
  collectValues,
  missingServers,
  type ParameterQuestion,
  type TakenVariable,
} from "../../hub/install/required-servers.ts";
import { commandLine } from "../../hub/install/scan-server-entry.ts";
import { type ReplacedFolder, skillHome } from "../../hub/install/skill-folders.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { findReferences } from "../../secrets/secret-references.ts";
import { setupCommand } from "../../skills/offer/offered-skill.ts";
import type { SkillRegistry } from "../../skills/registry/skill-registry.ts";
import { clientScope, findClient, showClientDiff } from "../client-config.ts";
import { type Invocation, splitNames } from "../command.ts";
import { maskCredential, showDiff, userConfigFile } from "../config-target.ts";
import { diffLines } from "../../config/masked-diff.ts";
import { bar, type Output } from "../output.ts";
import { listenForStopSignals, signalExitCode } from "../signals.ts";
import { readSecret } from "../terminal-input.ts";
import { plain } from "./describe-skill.ts";
import { withRegistry } from "./known-skills.ts";
import { counted } from "../table.ts";

export function runInstall(invocation: Invocation): Promise<number> {
  return abortOnSignals(invocation.out, (signal) =>
    withRegistry(invocation, (registry) => install(invocation, registry, signal)),
  );
}

/** People name an imported skill, as `skill list` does, where a source is needed. */
async function withImportedSource(
  error: unknown,
  named: string | undefined,
  registry: SkillRegistry,
): Promise<unknown> {
  const { code, message } = asToolcribError(error);
  if (code !== "not_found" || named === undefined) return error;
  const skill = (await registry.list()).find(({ name }) => name === named);
  const command = skill && setupCommand({ manifest: skill, from: skill.sourcePath, dir: skill.dir });
  return command === undefined
    ? error
    : new ToolcribError(code, message, { hint: `The skill ${named} was imported; to set it up: ${command}` });
}

async function install(invocation: Invocation, registry: SkillRegistry, signal: AbortSignal): Promise<number> {
  const { args, flags, out, cwd } = invocation;
  if (args.length > 1) throw new ToolcribError("invalid_arguments", "Name one source at a time.");
  const clients = chosenClients(invocation);
  const scope = clientScope(invocation);
  const force = flags.has("force");
  const place = await installPlaceFor(invocation, registry);
  const { sources, lockFile } = await sourcesFor(invocation, place);
  const select = splitNames(flags.text("select"));
  let fetched = "";
  const onProgress = (done: number, of: number): void => {
    fetched = ` ${bar(done, of)}`;
    redraw();
  };
  const options = { signal, select, all: flags.has("all"), force, lockFile, onProgress };
  const { redraw, stop } = out.spinner(() => `Fetching${fetched}`);
  const found = await planInstall(sources, place, options)
    .finally(stop)
    .catch(async (error: unknown) => {
      throw await withImportedSource(error, args[0], registry);
    });
  const plan = await withoutClientServers(found, clients, place);
  try {
    for (const warning of plan.warnings) out.warn(showHidden(warning));
    const withMcp = flags.has("withMcp");
    const missing = missingServers(plan.servers);
    const withoutTemplate = missing.filter(({ server }) => server.template === undefined);
    const left = withMcp ? withoutTemplate : missing;
    if (left.length > 0) throw serversNeededError(left, place, typedCommandLine(invocation));
    await confirmFindings(invocation, plan, signal);
    const { values, servers, taken, warnings } = await collectValues(plan.servers, {
      set: flags.list("set"),
      configuredIds: place.config.servers.map(({ id }) => id),
      env: place.env,
      cwd,
      userHome: place.userHome,
      variables: ({ skill }) => templateVariables(place, skillHome(place.home, skill)),
      ask: canAsk(invocation) ? parameterQuestions(invocation, signal) : undefined,
    });
    for (const warning of warnings) out.warn(warning);
    const checked = checkNewEntries(servers, place, { values, force });
    await confirmServers(invocation, checked, taken, signal);
    const filled: InstallPlan = { ...plan, servers };
    const choices: InstallChoices = { clients, scope, withMcp, values, force };
    if (flags.has("dryRun")) {
      showPreview(invocation, await previewInstall(filled, place, choices), taken);
      return 0;
    }
    const report = await applyInstall(filled, place, choices, {
      signal,
      onStep: (text) => out.transient(text),
      redactor: out.redactor,
    });
    out.transient("");
    showReport(invocation, report, taken);
    return 0;
  } finally {
    out.transient("");
    await plan.dispose();
  }
}

interface Sources {
  readonly sources: readonly WantedSource[];
  readonly lockFile: string;
}

async function sourcesFor(invocation: Invocation, { configFile }: InstallContext): Promise<Sources> {
  const { args, cwd } = invocation;
  const [source] = args;
  if (source === undefined) {
    const { file, sources } = await declaredSkills(cwd);
    return { sources, lockFile: lockFileIn(dirname(file)) };
  }
  const project =
    clientScope(invocation) === "project" ? ((await nearestPackage(cwd))?.path ?? `${cwd}/package.json`) : undefined;
  return { sources: [{ source, cwd }], lockFile: lockFileIn(dirname(project ?? configFile)) };
}

/** Asks whether to install despite findings of the scan. */
async function confirmFindings(invocation: Invocation, { skills }: InstallPlan, signal: AbortSignal): Promise<void> {
  const doubtful = skills.filter(({ findings }) => findings.some(({ severity }) => severity !== "note"));
  if (doubtful.length === 0 || !canAsk(invocation) || invocation.flags.has("dryRun")) return;
  const names = doubtful.map(({ skill }) => skill.name).join(", ");
  if (await confirm(invocation, showHidden(`Install ${names} anyway?`), signal)) return;
  throw new ToolcribError("cancelled", "Nothing was installed.");
}

/** The command line for a hint, without the values of `--set`, which may be secrets. */
function typedCommandLine({ args, flags }: Invocation): string[] {
  const texts = ["select", "client", "scope", "config"].flatMap((name) => {
    const text = flags.text(name);
    return text === undefined ? [] : [`--${name}`, text];
  });
  const switches = ["all", "force"].filter((name) => flags.has(name)).map((name) => `--${name}`);
  return ["skill", "install", ...args, ...texts, ...switches];
}

/**
 * The servers of a skill are added to the user's own config or the named one, never to a project's. The config may not exist
 * yet.
 */
async function installPlaceFor(invocation: Invocation, registry: SkillRegistry): Promise<InstallContext> {
  const { env, cwd, out } = invocation;
  const configFile = userConfigFile(invocation);
  const config = await loadConfig({ env, cwd, ...(existsSync(configFile) ? { file: configFile } : { config: {} }) });
  for (const warning of config.warnings) out.warn(renderDiagnostic(warning));
  return createInstallContext({ env, cwd, configFile, config, registry });
}

function chosenClients({ flags }: Invocation): AgentClient[] {
  return [...new Set(splitNames(flags.text("client")).map(findClient))];
}

/** False without a terminal, with `--yes` and with `--json`. */
function canAsk({ stdin, flags, out }: Invocation): boolean {
  return stdin.isTTY && !flags.has("yes") && !out.json;
}

function parameterQuestions(invocation: Invocation, signal: AbortSignal): AskForValue {
  let introduced: string | undefined;
  return async (question) => {
    const { server, parameter } = question;
    if (introduced !== server.id) {
      introduced = server.id;
      const { description } = server.server;
      invocation.out.note(terminalLine(`${server.id}${description === undefined ? "" : `: ${description}`}`));
    }
    return parameter.sensitive
      ? askSecret(invocation, question, signal)
      : askLine(invocation, promptFor(question), signal);
  };
}

/** Asks again after an empty answer, unless the value is optional. */
async function askSecret(
  { stdin, out }: Invocation,
  question: ParameterQuestion,
  signal: AbortSignal,
): Promise<string> {
  const { parameter, fromEnvironment } = question;
  const about = parameter.description === undefined ? "" : `, ${parameter.description}`;
  const example = parameter.example === undefined ? "" : `, for example ${parameter.example}`;
  const own = `, leave empty to use ${parameter.name} from your environment`;
  const optional = fromEnvironment ? own : parameter.required ? "" : ", optional";
  const prompt = `  ${parameter.name}${about}${example} (hidden${optional}): `;
  for (;;) {
    try {
      const answer = readSecret(stdin, { fromPipe: false, prompt, prompts: out.prompts });
      return await withAbort(answer, signal, () => new InstallInterrupted());
    } catch (error) {
      if (signal.aborted) stdin.setRawMode(false).pause();
      if (signal.aborted || (error instanceof ToolcribError && error.code === "cancelled"))
        throw new InstallInterrupted();
      if (!(error instanceof ToolcribError) || error.code !== "invalid_arguments") throw error;
      if (!parameter.required || fromEnvironment) return "";
    }
  }
}

function promptFor({ parameter, offered, fromEnvironment }: ParameterQuestion): string {
  const { name, description, required, example } = parameter;
  const parts = [
    ...(description === undefined ? [] : [description]),
    ...(example === undefined ? [] : [`for example ${example}`]),
    ...(offered !== undefined || required ? [] : ["optional"]),
    ...(fromEnvironment ? ["default from your environment"] : []),
  ];
  const about = parts.length === 0 ? "" : ` (${parts.join("; ")})`;
  return `  ${name}${about}${offered === undefined ? "" : ` [${offered}]`}: `;
}

async function confirm(invocation: Invocation, question: string, signal: AbortSignal): Promise<boolean> {
  return /^y(?:es)?$/i.test(await askLine(invocation, `${question} [y/N] `, signal));
}

async function askLine({ stdin, out }: Invocation, prompt: string, signal: AbortSignal): Promise<string> {
  const terminal = createInterface({ input: stdin, output: out.prompts });
  const ended = new AbortController();
  // The end of the input cancels.
  terminal.once("close", () => ended.abort());
  let isInterrupted = false;
  terminal.once("SIGINT", () => {
    isInterrupted = true;
    terminal.close();
  });
  try {
    return (await terminal.question(terminalLine(prompt), { signal: AbortSignal.any([signal, ended.signal]) })).trim();
  } catch (error) {
    if (isInterrupted || signal.aborted) throw new InstallInterrupted();
    if (!ended.signal.aborted) throw error;
    throw new ToolcribError("cancelled", "Nothing was installed.");
  } finally {
    terminal.close();
  }
}

/** Shows what will be started, without secrets, and asks for confirmation. Throws `cancelled` if it is declined. */
async function confirmServers(
  invocation: Invocation,
  checked: readonly CheckedEntry[],
  taken: readonly TakenVariable[],
  signal: AbortSignal,
): Promise<void> {
  const { out, flags } = invocation;
  if (!out.json) {
    for (const { name, server } of taken) out.note(`The server ${server} gets ${name} from your environment.`);
    for (const each of checked) out.note(startedServerText(each));
  }
  for (const finding of checked.flatMap(({ findings }) => findings)) {
    if (finding.severity !== "note") out.warn(showHidden(`${finding.severity}: ${renderEntryFinding(finding)}`));
  }
  if (checked.length === 0 || !canAsk(invocation) || flags.has("dryRun")) return;
  const ids = checked.map(({ id }) => id).join(", ");
  if (await confirm(invocation, `Set up and start ${ids}?`, signal)) return;
  throw new ToolcribError("cancelled", "Nothing was installed.");
}

function startedServerText({ id, entry }: Pick<CheckedEntry, "id" | "entry">): string {
  const { args = [], env = {}, headers = {}, cwd, url, command, sandbox } = entry;
  const { image, write } = typeof sandbox === "object" ? sandbox : {};
  const first =
    command !== undefined
      ? `is started with: ${commandLine(entry)}`
      : url === undefined && image !== undefined
        ? `runs in a container from the image ${commandLine({ command: image, args })}`
        : `is reached at ${url ?? ""}`;
  const lines = [
    `The server ${id} ${first}`,
    ...(cwd === undefined ? [] : [`  in the folder ${cwd}`]),
    ...(write ?? []).map((folder) => `  and may change the files in ${folder}`),
    ...Object.entries(env).map(([name, value]) => `  with the variable ${name}=${value}`),
    ...Object.entries(headers).map(([name, value]) => `  with the header ${name}: ${value}`),
  ];
  return lines.map((line) => showHidden(masked(line)).replaceAll(/[\r\n]+/g, "\\n")).join("\n");
}

function masked(text: string): string {
  const secrets = findReferences(text).filter(({ kind }) => kind === "secret");
  return secrets.reduce((all, { text: reference }) => all.replaceAll(reference, "***"), text);
}

const SHOWN_TOOLS = 8;

function showReport({ out }: Invocation, report: InstallReport, taken: readonly TakenVariable[]): void {
  const { installed, servers, secrets, restart, warnings, replaced } = report;
  for (const warning of warnings) out.warn(warning);
  if (out.json) {
    const names = restart.map(({ name }) => name);
    out.value({ installed, servers, secrets, environment: taken, restart: names, replaced });
    return;
  }
  for (const { name, id, clients } of installed) {
    const where = clients.length === 0 ? "" : `, and for ${clients.map((id) => clientById(id)?.name ?? id).join(", ")}`;
    out.line(`Installed ${out.paint("bold", plain(name))} as ${id}${where}.`);
  }
  for (const each of replaced) out.line(`  ${replacedText(each)}`);
  for (const { id, added, tools } of servers)
    out.line(`  server ${id} ${added ? "added" : "already present"}${toolsText(tools)}`);
  for (const name of secrets) out.line(`  secret ${name} stored`);
  for (const { how } of restart) out.line(how);
}

function replacedText({ path, replaced, comesBack }: ReplacedFolder): string {
  if ("link" in replaced) {
    const link = `${path} was a link to ${replaced.link}, which was not changed`;
    return comesBack ? `${link}; removing the skill restores the link` : link;
  }
  const back = comesBack ? "; removing the skill restores it" : "";
  return `the previous content of ${path} is kept in ${replaced.copy}${back}`;
}

function toolsText(tools: readonly string[]): string {
  if (tools.length === 0) return "";
  const more = tools.length > SHOWN_TOOLS ? ` and ${tools.length - SHOWN_TOOLS} more` : "";
  return `, ${counted(tools.length, "tool")}: ${tools.slice(0, SHOWN_TOOLS).join(", ")}${more}`;
}

function showPreview(invocation: Invocation, preview: InstallPreview, taken: readonly TakenVariable[]): void {
  const { out } = invocation;
  const { skills, servers, secrets, files, folders, replaced } = preview;
  if (out.json) {
    out.value({
      dryRun: true,
      installed: skills,
      servers,
      secrets,
      environment: taken,
      folders,
      replaced,
      files: files.map((change) => ({ file: change.file, changed: change.before !== change.after, ...diffOf(change) })),
    });
    return;
  }
  for (const { name, id } of skills) out.line(`Would install ${plain(name)} as ${id}.`);
  for (const folder of folders) {
    const kept = replaced.includes(folder) ? ", and keep its previous content" : "";
    out.line(`Would write the folder ${folder}${kept}`);
  }
  for (const name of secrets) out.line(`Would store the secret ${name}`);
  for (const change of files) showChange(invocation, change);
}

function showChange(invocation: Invocation, change: FileChange): void {
  const { file, before, after, client } = change;
  if (client === undefined) showDiff(invocation, file, before ?? "", after ?? "", {});
  else showClientDiff(invocation, client, { file, before, after }, {});
}

/** A client's file may contain anything, so JSON output only says that it changes. */
function diffOf({ before, after, client }: FileChange): { diff?: string[] } {
  return client === undefined ? { diff: diffLines(before ?? "", after ?? "").map(maskCredential) } : {};
}

/** Ctrl-C during a question, where it is a key and not a signal. */
class InstallInterrupted extends ToolcribError {
  constructor() {
    super("cancelled", "The install was interrupted. All changes were undone.");
  }
}

/**
 * Signals abort the task, which undoes its changes. Its error is shown, and the exit code is that of the signal. A second
 * signal is ignored: undoing is short, and half of it is worse than none.
 */
async function abortOnSignals(out: Output, task: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const stopped = listenForStopSignals({ names: ["SIGINT", "SIGTERM", "SIGHUP"], onSecond: "ignore" });
  try {
    return await task(stopped.signal);
  } catch (error) {
    const exitCode = stopped.exitCode ?? (error instanceof InstallInterrupted ? signalExitCode("SIGINT") : undefined);
    if (exitCode === undefined) throw error;
    out.error(asToolcribError(error).toObject());
    return exitCode;
  } finally {
    stopped.dispose();
  }
}

export function runRemove(invocation: Invocation): Promise<number> {
  return abortOnSignals(invocation.out, (signal) =>
    withRegistry(invocation, (registry) => remove(invocation, registry, signal)),
  );
}

async function remove(invocation: Invocation, registry: SkillRegistry, signal: AbortSignal): Promise<number> {
  const { args, flags, out } = invocation;
  const [name] = args;
  if (name === undefined || args.length > 1) {
    throw new ToolcribError("invalid_arguments", "Name one skill to remove.", {
      hint: "Run toolcrib skill list to see the names.",
    });
  }
  const clients = chosenClients(invocation).map(({ id }) => id);
  const place = await installPlaceFor(invocation, registry);
  const force = flags.has("force");
  const plan = await planRemoval(name, place, { clients, withServers: flags.has("withServers"), force });
  for (const { id, by } of plan.stillNeeded)
    out.note(`Keeping the server ${id}, which is needed by: ${by.map((each) => plain(each)).join(", ")}`);
  for (const id of plan.thereBefore) {
    out.note(`Keeping the server ${id}, which existed before this install. Remove it with toolcrib remove ${id}.`);
  }
  if (flags.has("dryRun")) {
    showPlan(invocation, plan);
    return 0;
  }
  const report = await removeSkill(plan, place, { force, signal });
  for (const kept of report.kept) out.warn(`${kept} was kept. Use --force to remove it.`);
  for (const { path, copy } of plan.keptCopies) out.warn(`The previous content of ${path} is kept in ${copy}.`);
  if (out.json) out.value({ ...report, restart: report.restart.map((client) => client.name) });
  else showRemoved(invocation, report);
  return 0;
}

function showRemoved({ out }: Invocation, report: RemovalReport): void {
  const { name, id, folders, files, restored, servers, secrets, clients, removed, restart } = report;
  const from = removed
    ? ""
    : ` from ${clients.length === 0 ? "no client, because it was not installed there" : clients.join(", ")}`;
  out.line(`Removed ${plain(name)} (${id})${from}.`);
  for (const folder of folders) out.line(`  folder ${folder}`);
  for (const { file, ids } of files) out.line(`  ${ids.join(", ")} in ${file}`);
  for (const server of servers) out.line(`  server ${server}`);
  for (const secret of secrets) out.line(`  secret ${secret}`);
  for (const path of restored) out.line(`Restored the previous content of ${path}.`);
  for (const { how } of restart) out.line(how);
}

function showPlan({ out }: Invocation, plan: RemovalPlan): void {
  const { id, name, folders, entries, servers, secrets, everywhere, clients } = plan;
  const restored = plan.restored.map(({ path }) => path);
  const names = { servers: servers.map((server) => server.id), secrets: secrets.map((secret) => secret.name) };
  if (out.json) {
    out.value({ dryRun: true, id, name, clients, removed: everywhere, folders, restored, entries, ...names });
    return;
  }
  if (everywhere) out.line(`Would remove ${plain(name)} (${id}).`);
  for (const folder of folders) out.line(`Would remove the folder ${folder}`);
  for (const path of restored) out.line(`Would restore the previous content of ${path}`);
  for (const { file, ids } of entries) out.line(`Would remove ${ids.join(", ")} from ${file}`);
  for (const { id: server, file } of servers) out.line(`Would remove the server ${server} from ${file}`);
  for (const secret of names.secrets) out.line(`Would delete the secret ${secret}`);
}
