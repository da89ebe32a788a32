/** `toolcrib skill install [source]`: reads, asks, puts in place, and says what was done. */
import { dirname } from "node:path";
import { showHidden } from "../../guard/detect/show-hidden.ts";
import { applyInstall, type InstallChoices } from "../../hub/install/apply-install.ts";
import { checkEntries } from "../../hub/install/check-entries.ts";
import { declaredSkills, nearestPackage } from "../../hub/install/package-skills.ts";
import { collectValues } from "../../hub/install/parameters.ts";
import { type InstallPlan, planInstall } from "../../hub/install/plan-install.ts";
import { previewInstall } from "../../hub/install/preview-install.ts";
import { type InstallPlace, variablesFor } from "../../hub/install/install-place.ts";
import type { WantedSource } from "../../hub/install/read-source.ts";
import { missingServers } from "../../hub/install/required-servers.ts";
import { serversNeeded } from "../../hub/install/servers-needed.ts";
import { skillHome } from "../../hub/install/skill-copies.ts";
import { lockFileIn } from "../../hub/install/skills-lock.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { SkillRegistry } from "../../skills/registry/registry.ts";
import { scopeOf } from "../clients/find-client.ts";
import type { Invocation } from "../command.ts";
import { chosenClients, namesIn, placeFor } from "./install-place.ts";
import { canAsk, confirm, parameterQuestions } from "./install-questions.ts";
import { showPreview, showReport } from "./install-report.ts";
import { approveServers } from "./install-servers.ts";
import { untilSignalled } from "./install-signals.ts";
import { withRegistry } from "./with-registry.ts";

export function run(invocation: Invocation): Promise<number> {
  return untilSignalled(invocation.out, (signal) =>
    withRegistry(invocation, (registry) => install(invocation, registry, signal)),
  );
}

async function install(invocation: Invocation, registry: SkillRegistry, signal: AbortSignal): Promise<number> {
  const { args, flags, out, cwd } = invocation;
  if (args.length > 1) throw new ToolcribError("invalid_arguments", "Name one source at a time.");
  const clients = chosenClients(invocation);
  const scope = scopeOf(invocation);
  const force = flags.has("force");
  const place = await placeFor(invocation, registry);
  const { sources, lockFile } = await sourcesFor(invocation, place);
  const select = namesIn(flags.text("select"));
  const options = { signal, select, all: flags.has("all"), force, lockFile };
  const plan = await planInstall(sources, place, options);
  try {
    for (const warning of plan.warnings) out.warn(showHidden(warning));
    const withMcp = flags.has("withMcp");
    const missing = missingServers(plan.servers);
    const nobodyKnows = missing.filter(({ server }) => server.template === undefined);
    const left = withMcp ? nobodyKnows : missing;
    if (left.length > 0) throw serversNeeded(left, place, commandLine(invocation));
    await decide(invocation, plan, signal);
    const { values, servers, taken, warnings } = await collectValues(plan.servers, {
      set: flags.list("set"),
      env: place.env,
      cwd,
      userHome: place.userHome,
      variables: ({ skill }) => variablesFor(place, skillHome(place.home, skill)),
      ask: canAsk(invocation) ? parameterQuestions(invocation, signal) : undefined,
    });
    for (const warning of warnings) out.warn(warning);
    const checked = checkEntries(servers, place, { values, force });
    await approveServers(invocation, checked, taken, signal);
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

async function sourcesFor(invocation: Invocation, { configFile }: InstallPlace): Promise<Sources> {
  const { args, cwd } = invocation;
  const [source] = args;
  if (source === undefined) {
    const { file, sources } = await declaredSkills(cwd);
    return { sources, lockFile: lockFileIn(dirname(file)) };
  }
  const project =
    scopeOf(invocation) === "project" ? ((await nearestPackage(cwd))?.path ?? `${cwd}/package.json`) : undefined;
  return { sources: [{ source, cwd }], lockFile: lockFileIn(dirname(project ?? configFile)) };
}

/** Whoever sits at the terminal has the last word on what the scan found. */
async function decide(invocation: Invocation, { skills }: InstallPlan, signal: AbortSignal): Promise<void> {
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
