/** `toolcrib skill install [source]`: reads, asks, puts in place, and says what was done. */
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { dirname } from "node:path";
import { createInterface } from "node:readline/promises";
import { terminalLine } from "../../base/visible-text.ts";
import type { AgentClient } from "../../clients/agent-client.ts";
import { clientById } from "../../clients/clients.ts";
import { renderDiagnostic } from "../../config/config-document.ts";
import { loadConfig } from "../../config/load-config.ts";
import { showHidden } from "../../guard/detect/show-hidden.ts";
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
  type WantedSource,
} from "../../hub/install/plan-install.ts";
import {
  type AskForValue,
  collectValues,
  missingServers,
  type ParameterQuestion,
  type TakenVariable,
} from "../../hub/install/required-servers.ts";
import { commandLine as commandLineOfInstallServers } from "../../hub/install/scan-server-entry.ts";
import { type ReplacedFolder, skillHome } from "../../hub/install/skill-folders.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { findReferences } from "../../secrets/secret-references.ts";
import type { SkillRegistry } from "../../skills/registry/skill-registry.ts";
import { clientScope, findClient, showClientDiff } from "../client-config.ts";
import type { Invocation } from "../command.ts";
import { maskCredential, showDiff, userConfigFile } from "../config-target.ts";
import { diffLines } from "../masked-diff.ts";
import type { Output } from "../output.ts";
import { readSecret } from "../terminal-input.ts";
import { plain } from "./describe-skill.ts";
import { withRegistry } from "./known-skills.ts";

export function run(invocation: Invocation): Promise<number> {
  return abortOnSignals(invocation.out, (signal) =>
    withRegistry(invocation, (registry) => install(invocation, registry, signal)),
  );
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
  const options = { signal, select, all: flags.has("all"), force, lockFile };
  const plan = await planInstall(sources, place, options);
  try {
    for (const warning of plan.warnings) out.warn(showHidden(warning));
    const withMcp = flags.has("withMcp");
    const missing = missingServers(plan.servers);
    const nobodyKnows = missing.filter(({ server }) => server.template === undefined);
    const left = withMcp ? nobodyKnows : missing;
    if (left.length > 0) throw serversNeededError(left, place, commandLine(invocation));
    await confirmFindings(invocation, plan, signal);
    const { values, servers, taken, warnings } = await collectValues(plan.servers, {
      set: flags.list("set"),
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

/** Whoever sits at the terminal has the last word on what the scan found. */
async function confirmFindings(invocation: Invocation, { skills }: InstallPlan, signal: AbortSignal): Promise<void> {
  const doubtful = skills.filter(({ findings }) => findings.some(({ severity }) => severity !== "note"));
  if (doubtful.length === 0 || !canAsk(invocation) || invocation.flags.has("dryRun")) return;
  const names = doubtful.map(({ skill }) => skill.name).join(", ");
  if (await confirm(invocation, showHidden(`Install ${names} all the same?`), signal)) return;
  throw new ToolcribError("cancelled", "Nothing was installed.");
}

/** What was typed, for a hint; values of `--set` are left out, because they may be secrets. */
function commandLine({ args, flags }: Invocation): string[] {
  const texts = ["select", "client", "scope", "config"].flatMap((name) => {
    const text = flags.text(name);
    return text === undefined ? [] : [`--${name}`, text];
  });
  const switches = ["all", "force"].filter((name) => flags.has(name)).map((name) => `--${name}`);
  return ["skill", "install", ...args, ...texts, ...switches];
}

/** What `skill install` and `skill remove` share: where they work, and for whom. */

/**
 * What a skill brings goes into the user's own config or the one that was named, never into a project's. One that is not there
 * yet is one without servers.
 */
export async function installPlaceFor(invocation: Invocation, registry: SkillRegistry): Promise<InstallContext> {
  const { env, cwd, out } = invocation;
  const configFile = userConfigFile(invocation);
  const config = await loadConfig({ env, cwd, ...(existsSync(configFile) ? { file: configFile } : { config: {} }) });
  for (const warning of config.warnings) out.warn(renderDiagnostic(warning));
  return createInstallContext({ env, cwd, configFile, config, registry });
}

export function chosenClients({ flags }: Invocation): AgentClient[] {
  return [...new Set(splitNames(flags.text("client")).map(findClient))];
}

export function splitNames(text: string | undefined): string[] {
  return (text ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

/** The questions of an install, for a person at a terminal. */

/** Nobody is asked without a terminal, with `--yes`, or where a program reads the answer. */
export function canAsk({ stdin, flags, out }: Invocation): boolean {
  return stdin.isTTY && !flags.has("yes") && !out.json;
}

export function parameterQuestions(invocation: Invocation, signal: AbortSignal): AskForValue {
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

/** Empty answers are asked again, unless nothing is an answer. */
async function askSecret(
  { stdin, out }: Invocation,
  question: ParameterQuestion,
  signal: AbortSignal,
): Promise<string> {
  const { parameter, fromEnvironment } = question;
  const about = parameter.description === undefined ? "" : `, ${parameter.description}`;
  const example = parameter.example === undefined ? "" : `, for example ${parameter.example}`;
  const own = `, empty for ${parameter.name} of your environment`;
  const optional = fromEnvironment ? own : parameter.required ? "" : ", empty for none";
  const prompt = `  ${parameter.name}${about}${example} (it is not shown${optional}): `;
  for (;;) {
    try {
      return await untilAborted(readSecret(stdin, { fromPipe: false, prompt, prompts: out.prompts }), signal);
    } catch (error) {
      if (signal.aborted) stdin.setRawMode(false).pause();
      if (signal.aborted || (error instanceof ToolcribError && error.code === "cancelled"))
        throw new InstallInterrupted();
      if (!(error instanceof ToolcribError) || error.code !== "invalid_arguments") throw error;
      if (!parameter.required || fromEnvironment) return "";
    }
  }
}

async function untilAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const stop = (): void => aborted.reject(new InstallInterrupted());
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([answer, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function promptFor({ parameter, offered, fromEnvironment }: ParameterQuestion): string {
  const { name, description, required, example } = parameter;
  const parts = [
    ...(description === undefined ? [] : [description]),
    ...(example === undefined ? [] : [`for example ${example}`]),
    ...(offered !== undefined || required ? [] : ["empty for none"]),
    ...(fromEnvironment ? ["offered is that of your environment"] : []),
  ];
  const about = parts.length === 0 ? "" : ` (${parts.join("; ")})`;
  return `  ${name}${about}${offered === undefined ? "" : ` [${offered}]`}: `;
}

export async function confirm(invocation: Invocation, question: string, signal: AbortSignal): Promise<boolean> {
  return /^y(?:es)?$/i.test(await askLine(invocation, `${question} [y/N] `, signal));
}

async function askLine({ stdin, out }: Invocation, prompt: string, signal: AbortSignal): Promise<string> {
  const terminal = createInterface({ input: stdin, output: out.prompts });
  const ended = new AbortController();
  // The end of the input is an answer too.
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

/** What an install is about to start, as a person reads it: everything that runs, and no secret. */

/** Shows them, and asks whoever sits at the terminal. Throws `cancelled` for a no. */
export async function confirmServers(
  invocation: Invocation,
  checked: readonly CheckedEntry[],
  taken: readonly TakenVariable[],
  signal: AbortSignal,
): Promise<void> {
  const { out, flags } = invocation;
  if (!out.json) {
    for (const { name, server } of taken) out.note(`${name} of your environment goes to the server ${server}.`);
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
  const { env = {}, headers = {}, cwd, url, command, sandbox } = entry;
  const image = typeof sandbox === "object" ? sandbox.image : undefined;
  const first =
    command !== undefined
      ? `is started with: ${commandLineOfInstallServers(entry)}`
      : url === undefined && image !== undefined
        ? `runs in a container of the image ${image}`
        : `is reached at ${url ?? ""}`;
  const lines = [
    `The server ${id} ${first}`,
    ...(cwd === undefined ? [] : [`  in the folder ${cwd}`]),
    ...Object.entries(env).map(([name, value]) => `  with the variable ${name}=${value}`),
    ...Object.entries(headers).map(([name, value]) => `  with the header ${name}: ${value}`),
  ];
  return lines.map((line) => showHidden(masked(line)).replaceAll(/[\r\n]+/g, "\\n")).join("\n");
}

function masked(text: string): string {
  const secrets = findReferences(text).filter(({ kind }) => kind === "secret");
  return secrets.reduce((all, { text: reference }) => all.replaceAll(reference, "***"), text);
}

/** What an install did, or would do, as people and as programs read it. */

const SHOWN_TOOLS = 8;

export function showReport({ out }: Invocation, report: InstallReport, taken: readonly TakenVariable[]): void {
  const { installed, servers, secrets, restart, warnings, replaced } = report;
  for (const warning of warnings) out.warn(warning);
  if (out.json) {
    const names = restart.map(({ name }) => name);
    out.value({ installed, servers, secrets, environment: taken, restart: names, replaced });
    return;
  }
  for (const { name, id, clients } of installed) {
    const where = clients.length === 0 ? "" : `, and for ${clients.map(clientName).join(", ")}`;
    out.line(`Installed ${out.paint("bold", plain(name))} as ${id}${where}.`);
  }
  for (const each of replaced) out.line(`  ${replacedText(each)}`);
  for (const { id, added, tools } of servers)
    out.line(`  server ${id} ${added ? "added" : "was there"}${toolsText(tools)}`);
  for (const name of secrets) out.line(`  secret ${name} stored`);
  for (const { how } of restart) out.line(how);
}

function replacedText({ path, replaced, comesBack }: ReplacedFolder): string {
  if ("link" in replaced) {
    const link = `${path} was a link to ${replaced.link}, which is untouched`;
    return comesBack ? `${link}; the link comes back when the skill is removed` : link;
  }
  const back = comesBack ? ", and comes back when the skill is removed" : "";
  return `what was in ${path} is kept in ${replaced.copy}${back}`;
}

function toolsText(tools: readonly string[]): string {
  if (tools.length === 0) return "";
  const more = tools.length > SHOWN_TOOLS ? ` and ${tools.length - SHOWN_TOOLS} more` : "";
  return `, ${tools.length} tools: ${tools.slice(0, SHOWN_TOOLS).join(", ")}${more}`;
}

function clientName(id: string): string {
  return clientById(id)?.name ?? id;
}

export function showPreview(invocation: Invocation, preview: InstallPreview, taken: readonly TakenVariable[]): void {
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
    const kept = replaced.includes(folder) ? ", and keep what is there now" : "";
    out.line(`Would write the folder ${folder}${kept}`);
  }
  for (const name of secrets) out.line(`Would store the secret ${name}`);
  for (const change of files) showChange(invocation, change);
}

export function showChange(invocation: Invocation, change: FileChange): void {
  const { file, before, after, client } = change;
  if (client === undefined) showDiff(invocation, file, before ?? "", after ?? "", {});
  else showClientDiff(invocation, client, { file, before, after }, {});
}

/** Another program's file may hold anything, so programs are told only that it changes. */
function diffOf({ before, after, client }: FileChange): { diff?: string[] } {
  return client === undefined ? { diff: diffLines(before ?? "", after ?? "").map(maskCredential) } : {};
}

/** Lets a command that changes many things put them back when it is told to end. */

/** Ctrl-C where a question has the terminal to itself, so that it makes no signal. */
export class InstallInterrupted extends ToolcribError {
  constructor() {
    super("cancelled", "The install was interrupted; everything is as it was before.");
  }
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Ctrl-C and the like abort the task's signal instead of ending the process; what the task throws then is shown, with the
 * exit code that shells expect. A second signal changes nothing: putting back is short, and half of it is worse than none.
 */
export async function abortOnSignals(out: Output, task: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const interrupt = new AbortController();
  let exitCode: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    exitCode ??= 128 + constants.signals[signal];
    interrupt.abort();
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  try {
    return await task(interrupt.signal);
  } catch (error) {
    if (error instanceof InstallInterrupted) exitCode ??= 128 + constants.signals.SIGINT;
    if (exitCode === undefined) throw error;
    out.error(asToolcribError(error).toObject());
    return exitCode;
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  }
}
