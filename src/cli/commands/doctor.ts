/** `toolcrib doctor`: checks the machine, the config and every server. */
import { originalOf } from "../../model/capability.ts";
import { describeQuarantined } from "../../catalog/quarantine.ts";
import { randomBytes } from "node:crypto";
import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { CLIENTS } from "../../clients/clients.ts";
import { openClientFile } from "../../config/client-servers.ts";
import { renderDiagnostic } from "../../config/config-document.ts";
import { toolcribHome } from "../../config/find-config.ts";
import { describeShadowing, findShadowingAmong, type Shadowing } from "../../hub/pins/shadowing.ts";
import { neededVariables } from "../../hub/clients/gateway-command.ts";
import { resolveCluster } from "../../hub/cluster/hub-cluster.ts";
import type { Hub } from "../../hub/hub.ts";
import type { SkillInfo } from "../../hub/skills/hub-skills.ts";
import { STORE_DIALECT } from "../../hub/servers/stored-servers.ts";
import { clusterOf } from "../../model/config.ts";
import { asToolcribError, type ToolcribError } from "../../model/errors.ts";
import { isAtLeast } from "../../model/finding.ts";
import type { Diagnostic, LoadedConfig } from "../../model/loaded-config.ts";
import { sandboxKindOf, type ServerSpec } from "../../model/server-spec.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { Secrets } from "../../secrets/secrets.ts";
import { type AvailableSandbox, availableSandboxes } from "../../upstream/sandbox/open-sandbox.ts";
import { CERTIFICATE_NAMES, inheritedVariables } from "../../upstream/stdio/child-environment.ts";
import { packageRun } from "../../upstream/stdio/package-runner.ts";
import { isJsonObject } from "../../model/json.ts";
import { clientEnvironment } from "../client-config.ts";
import { loadCommandConfigQuietly } from "../command-config.ts";
import type { Invocation } from "../command.ts";
import { loginExpiryNote, type RunningHub, showAnswers, withHub } from "../running-hub.ts";
import { plain } from "../skill/describe-skill.ts";
import type { Store } from "../../store/store.ts";
import { counted } from "../table.ts";

/** Exits with 0 if nothing failed, even with warnings. */
export async function run(invocation: Invocation): Promise<number> {
  const report = new Report(invocation.out);
  report.add([nodeCheck(process.versions.node), homeCheck(invocation.env)]);
  const config = await load(invocation, report);
  if (config !== undefined) {
    report.add(networkChecks(config, invocation.env));
    report.add(await surroundingChecks(invocation, config));
    report.add(await clientChecks(invocation, config));
    await checkServers(invocation, config, report);
  }
  return report.end() ? 0 : 1;
}

async function load(invocation: Invocation, report: Report): Promise<LoadedConfig | undefined> {
  try {
    const config = await loadCommandConfigQuietly(invocation);
    report.add(configCheck(config, invocation.env));
    report.begin(config.servers.map(({ id }) => id));
    return config;
  } catch (error) {
    report.add(configErrorCheck(asToolcribError(error)));
    return undefined;
  }
}

/** Checks what servers and nodes need from this machine and from others; these take a moment. */
async function surroundingChecks({ env, out }: Invocation, config: LoadedConfig): Promise<Check[]> {
  const { containers, secrets } = config.config;
  const home = toolcribHome(env);
  const parts = { secrets: new Secrets({ env, home, redactor: out.redactor, ...secrets }), redactor: out.redactor };
  const { stop } = out.spinner(() => "looking for sandboxes and the cluster");
  const checks = Promise.all([availableSandboxes({ env, containers }), clusterChecks(config, parts)]);
  const [cages, cluster] = await checks.finally(stop);
  return [...cageChecks(cages, config.servers), ...cluster];
}

/** Variables that a hub lacks if one of these clients starts it. */
async function clientChecks(invocation: Invocation, config: LoadedConfig): Promise<Check[]> {
  const needed = [...neededVariables(config)];
  const clients = needed.length === 0 ? [] : CLIENTS.filter(({ reducesEnvironment }) => reducesEnvironment);
  const place = clientEnvironment(invocation);
  // In the home a client's file of the project is that of the user.
  const files = clients.flatMap((client) => {
    const byPlace = new Map(client.files(place).map((file) => [`${file.path} ${file.projectKey ?? ""}`, file]));
    return [...byPlace.values()].map((file) => ({ client, file }));
  });
  const checks = files.map(async ({ client, file }): Promise<Check[]> => {
    const opened = await openClientFile(client, file);
    if (opened.state !== "read") return [];
    return opened.own.flatMap((id) => {
      const { args, env } = opened.entries[id] ?? {};
      // Others are of another config, or a URL.
      if (!Array.isArray(args) || !args.includes(config.file)) return [];
      const only: unknown = args[args.indexOf("--server") + 1];
      const missing = needed
        .filter(([name]) => !(isJsonObject(env) && Object.hasOwn(env, name)))
        .map(([name, ids]) => [name, args.includes("--server") ? ids.filter((each) => each === only) : ids] as const)
        .filter(([, ids]) => ids.length > 0)
        .map(([name, ids]) => `${name} (${ids.join(", ")})`);
      if (missing.length === 0) return [];
      const message = `${client.name} passes on a part of its environment: a hub that it starts lacks ${missing.join(", ")}.`;
      const hint = `With them set, run toolcrib connect ${client.id} again, or start the hub in a terminal with toolcrib hub start.`;
      return [{ area: "clients", status: "warn", message, hint } as const];
    });
  });
  return (await Promise.all(checks)).flat();
}

async function checkServers(invocation: Invocation, config: LoadedConfig, report: Report): Promise<void> {
  const onWarning = (message: string): void => report.hold({ area: "hub", status: "warn", message });
  try {
    await withHub(
      invocation,
      async (running) => {
        report.add([
          ...storeCheck(running.hub),
          ...sharedStoreCheck({ config: running.hub.config, store: running.hub.internals.store }),
        ]);
        if (running.isShared) {
          report.add([{ area: "hub", status: "ok", message: `checked at the running hub, process ${process.pid}` }]);
          running.connectAuto();
        } else {
          // Including those that do not connect automatically.
          running.connect(running.hub.config.servers.filter((spec) => spec.enabled).map((spec) => spec.id));
        }
        report.add(skillChecks(running));
        await showAnswers(invocation.out, running, (info) => {
          if (report.isShown) report.add(serverChecks(running, [info]));
        });
        if (!report.isShown) report.add(serverChecks(running));
        report.add(shadowingChecks(running));
        return 0;
      },
      { config, onWarning },
    );
  } catch (error) {
    const { message, hint } = asToolcribError(error);
    report.add([{ area: "hub", status: "fail", message, hint }]);
  }
}

const STYLE = { ok: "green", warn: "yellow", fail: "red" } as const;

/** The checks: to a person as they are made, otherwise all at the end. */
class Report {
  readonly #out: Invocation["out"];
  readonly #checks: Check[] = [];
  readonly #held: Check[] = [];
  /** Of the column with what is checked; undefined until something is shown. */
  #width: number | undefined;

  constructor(out: Invocation["out"]) {
    this.#out = out;
  }

  /** From here on checks are shown at once, where a person sees them. */
  begin(servers: readonly string[]): void {
    if (!this.#out.showsParts) return;
    this.#width = Math.max(...this.#checks.map((check) => subjectOf(check).length), ...servers.map((id) => id.length));
    for (const check of this.#checks) this.#show(check);
  }

  add(checks: readonly Check[]): void {
    this.#checks.push(...checks);
    if (this.#width !== undefined) for (const check of checks) this.#show(check);
  }

  get isShown(): boolean {
    return this.#width !== undefined;
  }

  /** A warning of the hub: it may be about a server, whose check will repeat it. */
  hold(check: Check): void {
    (this.isShown ? this.#held : this.#checks).push(check);
  }

  /** Whether nothing failed. */
  end(): boolean {
    const shown = new Set(this.isShown ? this.#checks : []);
    const checks = withoutRepeats([...this.#checks, ...this.#held]);
    const ok = checks.every(({ status }) => status !== "fail");
    if (this.#out.json) this.#out.value({ ok, checks });
    else {
      this.#width ??= Math.max(...checks.map((check) => subjectOf(check).length));
      for (const check of checks) if (!shown.has(check)) this.#show(check);
      this.#summarize(checks);
    }
    return ok;
  }

  #summarize(checks: readonly Check[]): void {
    const failed = checks.filter((check) => check.status === "fail").length;
    const warned = checks.filter((check) => check.status === "warn").length;
    const problems = failed === 0 ? "No problems found" : counted(failed, "problem");
    this.#out.line("");
    this.#out.line(`${problems}${failed + warned === 0 ? "" : `, ${counted(warned, "warning")}`}.`);
  }

  #show(check: Check): void {
    const out = this.#out;
    const { status, message, hint } = check;
    const width = this.#width ?? 0;
    const indent = " ".repeat(width + 8);
    const text = message.trimEnd().replaceAll("\n", `\n${indent}`);
    out.line(`${out.paint(STYLE[status], status.padEnd(4))}  ${subjectOf(check).padEnd(width)}  ${text}`);
    if (hint !== undefined) out.line(`${indent}${hint}`);
  }
}

function subjectOf(check: Check): string {
  return check.server ?? check.area;
}

export interface Check {
  readonly area:
    | "node"
    | "home"
    | "network"
    | "cages"
    | "config"
    | "cluster"
    | "store"
    | "skills"
    | "clients"
    | "hub"
    | "server";
  readonly status: "ok" | "warn" | "fail";
  readonly message: string;
  readonly hint?: string;
  readonly server?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

const MIN_NODE_VERSION = [22, 14] as const;

export function nodeCheck(version: string): Check {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [neededMajor, neededMinor] = MIN_NODE_VERSION;
  if (major > neededMajor || (major === neededMajor && minor >= neededMinor)) {
    return { area: "node", status: "ok", message: `Node ${version}` };
  }
  return {
    area: "node",
    status: "fail",
    message: `Node ${version} is too old. Toolcrib needs ${MIN_NODE_VERSION.join(".")} or newer.`,
    hint: "Download it from https://nodejs.org",
  };
}

/** The home is created when it is first needed, so its parent must be writable until then. */
export function homeCheck(env: NodeJS.ProcessEnv): Check {
  const home = toolcribHome(env);
  let folder = home;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch {
    return {
      area: "home",
      status: "fail",
      message: `${folder} is not writable.`,
      hint: "Change its permissions, or set TOOLCRIB_HOME to another folder.",
    };
  }
  return { area: "home", status: "ok", message: home };
}

function configCheck({ file, servers, warnings, project, unusable }: LoadedConfig, env: NodeJS.ProcessEnv): Check[] {
  // Those of a server that fails because of them are reported there.
  const failing = servers.flatMap(({ id, enabled }) => (enabled ? (unusable?.get(id) ?? []) : []));
  const told = warnings
    .filter(({ path, line }) => !failing.some((problem) => problem.path === path && problem.line === line))
    .map((warning): Check => ({ area: "config", status: "warn", ...wordsOf(warning) }));
  const own = servers.filter(({ fromProject }) => fromProject !== true);
  const counted = countOf(own);
  if (project !== undefined) {
    const brought = countOf(servers.filter((spec) => !own.includes(spec)));
    told.unshift({ area: "config", status: "ok", message: `${project.file} (project, trusted): ${brought}` });
  }
  if (file !== null) return [{ area: "config", status: "ok", message: `${file}: ${counted}` }, ...told];
  const hint = `toolcrib add creates one at ${join(toolcribHome(env), "toolcrib.json")}`;
  return [{ area: "config", status: "warn", message: `There is no config file; ${counted}.`, hint }, ...told];
}

/** The servers in the store; empty if there is no store yet. */
function storeCheck({ config, internals: { store } }: Pick<Hub, "config" | "internals">): Check[] {
  if (store === undefined) return [];
  const stored = config.servers.filter(({ origin }) => origin.dialect === STORE_DIALECT);
  return [{ area: "store", status: "ok", message: `${store.place}: ${countOf(stored)}` }];
}

function countOf(servers: LoadedConfig["servers"]): string {
  const enabled = servers.filter((spec) => spec.enabled).length;
  return `${counted(servers.length, "server")}, ${enabled} enabled`;
}

function configErrorCheck(error: ToolcribError): Check[] {
  const problems = error.details?.["problems"];
  // Only config errors have diagnostics.
  const diagnostics = Array.isArray(problems) && error.code === "invalid_config" ? (problems as Diagnostic[]) : [];
  if (diagnostics.length > 0) {
    return diagnostics.map((problem) => ({ area: "config", status: "fail", ...wordsOf(problem) }));
  }
  return [{ area: "config", status: "fail", message: error.message, hint: error.hint }];
}

function wordsOf(diagnostic: Diagnostic): { message: string; hint?: string } {
  const { hint, ...rest } = diagnostic;
  return { message: renderDiagnostic(rest), hint };
}

/** Names the variables that programs of servers inherit to reach the network, and those that cannot work. */
export function networkChecks(
  { config, servers }: Pick<LoadedConfig, "config" | "servers">,
  env: NodeJS.ProcessEnv,
): Check[] {
  const programs = servers.filter(({ enabled, command }) => enabled && command !== undefined);
  if (programs.length === 0) return [];
  const anyone = { origin: { file: "", dialect: "toolcrib" } };
  const passed = inheritedVariables({ ...anyone, hubInherit: config.env.inherit }, { base: env, named: {} });
  const usual = inheritedVariables(anyone, { base: env, named: {} });
  const names = Object.keys(passed).toSorted();
  const kept = Object.keys(usual).filter((name) => !Object.hasOwn(passed, name));
  const listed = names.length === 0 ? "no proxy, certificate authority or registry" : names.join(", ");
  const without = kept.length === 0 ? "" : `; not passed on, because of env.inherit: ${kept.toSorted().join(", ")}`;
  return [
    {
      area: "network",
      status: "ok",
      message: `servers inherit ${listed}${without}`,
      details: { inherited: names, notPassedOn: kept },
    },
    ...Object.entries(passed).flatMap(([name, value]) => variableChecks(name, value)),
    ...programs.flatMap(runnerChecks),
  ];
}

/** Never shows a value that may contain credentials. */
function variableChecks(name: string, value: string): Check[] {
  const warn = (message: string, hint: string): Check[] => [{ area: "network", status: "warn", message, hint }];
  if (CERTIFICATE_NAMES.some((each) => each.toLowerCase() === name.toLowerCase())) {
    const paths = name === "SSL_CERT_DIR" ? value.split(delimiter) : [value];
    return paths
      .filter((path) => !isReadable(path))
      .flatMap((path) => warn(`${name} names ${path}, which cannot be read.`, "Correct the path, or unset it."));
  }
  const isProxy = /^(?:https?|all)_proxy$|^npm_config_(?:https_)?proxy$/i.test(name);
  if (!isProxy || URL.canParse(value.includes("://") ? value : `http://${value}`)) return [];
  return warn(`${name} is not an address.`, "Write it as in http://proxy.example.com:3128.");
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** A bubblewrap sandbox starts with an empty home, so that a package is fetched at every start. */
function runnerChecks({ id, command = "", args = [], sandbox }: ServerSpec): Check[] {
  if (sandbox === undefined || sandboxKindOf(sandbox) !== "bubblewrap") return [];
  if ((typeof sandbox === "object" && sandbox.network === "host") || packageRun(command, args) === undefined) return [];
  return [
    {
      area: "server",
      server: id,
      status: "warn",
      message: `${command} fetches its package when it starts, and its sandbox has no network.`,
      hint: 'Set `sandbox.network` to "host", or install the package and name its program as `command`.',
    },
  ];
}

/** bubblewrap is tested; a container would need an image, and there may be none. */
const UNTRIED_NOTE = " responds; containers are not tested before a server starts in one";

/** One line per kind. A missing one is a problem only for servers that need it. */
export function cageChecks(cages: readonly AvailableSandbox[], servers: readonly ServerSpec[]): Check[] {
  return cages
    .filter(({ kind }) => kind !== "none")
    .map((cage): Check => {
      const { kind, available, version, reason, hint } = cage;
      const needing = servers
        .filter(({ enabled, sandbox }) => enabled && sandbox !== undefined && sandboxKindOf(sandbox) === kind)
        .map(({ id }) => id);
      const whose = needing.length === 0 ? "" : `; used by ${needing.join(", ")}`;
      const details = { ...cage, servers: needing };
      if (available) {
        const found = `${version ?? "available"}${kind === "container" ? UNTRIED_NOTE : ""}`;
        return { area: "cages", status: "ok", message: `${kind}: ${found}${whose}`, details };
      }
      return {
        area: "cages",
        status: needing.length === 0 ? "ok" : "fail",
        message: `${kind}: not available on this machine (${reason ?? "unknown reason"})${whose}`,
        hint,
        details,
      };
    });
}

const CONNECT_MS = 5000;

/** Empty if there is no cluster. Connects to NATS without joining the cluster. */
export async function clusterChecks(
  { config, baseDir }: LoadedConfig,
  parts: { readonly secrets: Secrets; readonly redactor: Redactor },
): Promise<Check[]> {
  const entry = clusterOf(config.cluster);
  if (entry === undefined) return [];
  try {
    const { connectNats, OPEN_NATS_WARNING: OPEN_NATS } = await import("../../cluster/nats-link.ts");
    const { MessageSigner } = await import("../../cluster/message-signer.ts");
    const resolved = await resolveCluster(entry, baseDir, parts);
    // Nothing is sent, so any key will do.
    const signer = new MessageSigner(randomBytes(32));
    const link = await connectNats(resolved, { name: "doctor", timeoutMs: CONNECT_MS, signer });
    const { isOpenToAll } = link;
    await link.close();
    const answers = `NATS with JetStream responds; the cluster is ${entry.name}`;
    const open: Check[] = isOpenToAll ? [{ area: "cluster", status: "warn", message: OPEN_NATS }] : [];
    return [{ area: "cluster", status: "ok", message: answers }, ...open];
  } catch (error) {
    const { message, hint } = asToolcribError(error);
    const told = parts.redactor.mask(message);
    return [{ area: "cluster", status: "fail", message: told, hint }];
  }
}

export function sharedStoreCheck({
  config,
  store,
}: Pick<Hub, "config"> & { readonly store: Pick<Store, "kind"> | undefined }): Check[] {
  if (clusterOf(config.config.cluster) === undefined || store?.kind === "postgres") return [];
  return [
    {
      area: "cluster",
      status: "fail",
      message: "The nodes do not share a store: a cluster needs PostgreSQL.",
      hint: "Set `store` to the URL of a PostgreSQL database.",
    },
  ];
}

export function serverChecks(
  running: RunningHub,
  servers: readonly ServerInfo[] = running.hub.servers.list(),
): Check[] {
  const { hub, took } = running;
  const reasons = new Map(running.unreachable().map(({ info, reason }) => [info.id, reason]));
  const specs = new Map(hub.config.servers.map((spec) => [spec.id, spec]));
  return servers.flatMap((info) => {
    const reason = reasons.get(info.id) ?? (info.state === "failed" ? info.lastError : undefined) ?? undefined;
    const first =
      reason === undefined ? connectedCheck(info, took.get(info.id)) : failedCheck(info, reason, specs.get(info.id));
    return [first, ...warningsOf(info), ...quarantineOf(running, info.id)];
  });
}

function connectedCheck(info: ServerInfo, ms: number | undefined): Check {
  const base = { area: "server", server: info.id } as const;
  if (info.state === "disabled") {
    return { ...base, status: "ok", message: "disabled", hint: `Enable it with toolcrib enable ${info.id}.` };
  }
  if (info.state === "idle") return { ...base, status: "ok", message: "not connected now; it connects on demand" };
  const version = info.serverVersion === null ? "" : `, version ${info.serverVersion}`;
  const time = ms === undefined ? "" : `${ms} ms, `;
  return {
    ...base,
    status: "ok",
    message: `${info.transport}, ${counted(info.toolCount, "tool")}, ${time}protocol ${info.protocolVersion ?? "unknown"}${version}`,
    details: {
      ms,
      transport: info.transport,
      era: info.era,
      protocolVersion: info.protocolVersion,
      toolCount: info.toolCount,
      serverVersion: info.serverVersion,
    },
  };
}

function failedCheck(info: ServerInfo, reason: string, spec: ServerSpec | undefined): Check {
  const hint = info.hint ?? serverAdvice(spec);
  return {
    area: "server",
    server: info.id,
    status: "fail",
    message: reason,
    hint,
    details: { state: info.state, transport: info.transport, origin: info.origin.file, problem: info.problem },
  };
}

/** Uses only text from the config, in which references are not resolved, so no secret is shown. */
function serverAdvice(spec: ServerSpec | undefined): string | undefined {
  if (spec === undefined) return undefined;
  if (spec.command === undefined) return `Check the url and the credentials of ${spec.id} in ${spec.origin.file}.`;
  return `Check command, args and env of ${spec.id} in ${spec.origin.file}, or start ${spec.command} by hand to see the error.`;
}

/** Progress of a first start in a container is not a warning. */
const PROGRESS = /\bimage is being\b/;

function warningsOf(info: ServerInfo): Check[] {
  const login = loginExpiryNote(info);
  const base = { area: "server", server: info.id } as const;
  return [
    ...(login === undefined ? [] : [{ ...base, status: "warn" as const, ...login }]),
    ...info.warnings.map((message): Check => ({ ...base, status: PROGRESS.test(message) ? "ok" : "warn", message })),
  ];
}

/** A server's warning is reported when it occurs and with the server. Only the latter is kept. */
export function withoutRepeats(checks: readonly Check[]): Check[] {
  const ofServers = new Set(
    checks.flatMap(({ server, message }) => (server === undefined ? [] : `${server}: ${message}`)),
  );
  return checks.filter(({ area, message }) => area !== "hub" || !ofServers.has(message));
}

function quarantineOf({ hub }: RunningHub, id: string): Check[] {
  return hub.internals
    .quarantined()
    .filter(({ source }) => source === id)
    .map((each) => ({
      area: "server",
      server: id,
      status: "warn",
      message: describeQuarantined(each),
      hint: "The server's author has to fix this. Its other tools are not affected.",
    }));
}

/** The number of offered skills, then a warning for each problem with folders, skills or roles. */
function skillChecks({ hub, skillWarnings }: RunningHub): Check[] {
  const { config, baseDir } = hub.config;
  const own = hub.skills.list().filter(({ from }) => !from.startsWith("server:"));
  const dirs = config.skills.dirs.map((dir) => resolve(baseDir, dir));
  const from = dirs.length === 0 ? "" : `; folders: ${dirs.join(", ")}`;
  const counted: Check = {
    area: "skills",
    status: "ok",
    message: `${own.length} ${own.length === 1 ? "skill is" : "skills are"} offered${from}`,
    details: { offered: own.map(({ name }) => name), dirs },
  };
  const unset = own.filter(({ missing }) => missing.servers.length > 0);
  return [counted, ...unset.map(needsSetupCheck), ...skillWarnings.map(skillWarningCheck)];
}

function needsSetupCheck({ name, missing, setup }: SkillInfo): Check {
  const servers = plain(missing.servers.join(", "));
  return {
    area: "skills",
    status: "warn",
    message: `The skill ${plain(name)} needs setup: MCP servers that it requires are missing: ${servers}`,
    ...(setup === undefined ? {} : { hint: setup }),
  };
}

function skillWarningCheck(warning: string): Check {
  const hint = SKILL_ADVICE.find(([about]) => about.test(warning))?.[1];
  return { area: "skills", status: "warn", message: plain(warning, Infinity), hint };
}

const SKILL_ADVICE: readonly (readonly [RegExp, string])[] = [
  [/ skills\.dirs /, "Create it, or correct skills.dirs in the config. Paths are relative to the config's folder."],
  [
    / is (?:withheld|not offered): /,
    "Review it. If it is safe, import it with toolcrib skill import <folder> --force.",
  ],
  [/^The role /, "Correct roles.<role>.skills, or import the skill. Run toolcrib skill list to see all skills."],
];

const MAX_NAMED_TOOLS = 5;

/** Minor cases only, one line per pair of servers. The hub itself warns about serious ones. */
function shadowingChecks({ hub }: RunningHub): Check[] {
  if (hub.config.config.guard.definitions === "ignore") return [];
  const tools = hub.view(hub.session).tools.map(originalOf);
  const slight = findShadowingAmong(tools).filter(({ severity }) => !isAtLeast(severity, "medium"));
  return [
    ...Map.groupBy(slight, ({ kind, tool, target }) => JSON.stringify([kind, tool.server, target.server])).values(),
  ].flatMap((group) => shadowingCheck(group));
}

function shadowingCheck(group: readonly Shadowing[]): Check[] {
  const [first] = group;
  if (first === undefined) return [];
  const { kind, tool, target } = first;
  const names = group
    .slice(0, MAX_NAMED_TOOLS)
    .map((each) => (each.tool.name === each.target.name ? each.tool.name : `${each.tool.name} (${each.target.name})`));
  const more = group.length > names.length ? ` and ${group.length - names.length} more` : "";
  const what = kind === "mention" ? "tools mention tools" : "tools have the same or similar names as tools";
  const many = `${group.length} ${what} of the server ${target.server}: ${names.join(", ")}${more}`;
  return [
    {
      area: "server",
      server: tool.server,
      status: "warn",
      message: group.length === 1 ? describeShadowing(first) : many,
      hint: "Harmless between servers that you trust. An unknown server may be imitating another one.",
      details: { shadowing: group },
    },
  ];
}
