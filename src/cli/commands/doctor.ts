import { asToolcribError } from "../../model/errors.ts";
import { toolcribHome } from "../../config/find-config.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import type { Invocation } from "../command.ts";
import { Secrets } from "../../secrets/secrets.ts";
import { availableCages } from "../../upstream/cages/available.ts";
import { loadQuietly } from "../command-config.ts";
import { cageChecks } from "../doctor/cage-checks.ts";
import { clusterChecks, sharedStoreCheck } from "../doctor/cluster-checks.ts";
import {
  type Check,
  configCheck,
  configErrorCheck,
  homeCheck,
  nodeCheck,
  storeCheck,
} from "../doctor/machine-checks.ts";
import { serverChecks, withoutRepeats } from "../doctor/server-checks.ts";
import { shadowingChecks } from "../doctor/shadowing-checks.ts";
import { skillChecks } from "../doctor/skill-checks.ts";
import { withHub } from "../running-hub.ts";

/** Exits 0 when nothing failed; warnings are told and harm nothing. */
export async function run(invocation: Invocation): Promise<number> {
  const found: Check[] = [nodeCheck(process.versions.node), homeCheck(invocation.env)];
  const config = await load(invocation, found);
  if (config !== undefined) {
    found.push(...(await surroundingChecks(invocation, config)));
    await checkServers(invocation, config, found);
  }
  const checks = withoutRepeats(found);
  const ok = checks.every((check) => check.status !== "fail");
  if (invocation.out.json) invocation.out.value({ ok, checks });
  else show(invocation, checks);
  return ok ? 0 : 1;
}

async function load(invocation: Invocation, checks: Check[]): Promise<LoadedConfig | undefined> {
  try {
    const config = await loadQuietly(invocation);
    checks.push(...configCheck(config, invocation.env));
    return config;
  } catch (error) {
    checks.push(...configErrorCheck(asToolcribError(error)));
    return undefined;
  }
}

/** What servers and nodes need of this machine and of others. */
async function surroundingChecks({ env, out }: Invocation, config: LoadedConfig): Promise<Check[]> {
  const { containers, secrets } = config.config;
  const home = toolcribHome(env);
  const parts = { secrets: new Secrets({ env, home, redactor: out.redactor, ...secrets }), redactor: out.redactor };
  const [cages, cluster] = await Promise.all([availableCages({ env, containers }), clusterChecks(config, parts)]);
  return [...cageChecks(cages, config.servers), ...cluster];
}

async function checkServers(invocation: Invocation, config: LoadedConfig, checks: Check[]): Promise<void> {
  const onWarning = (message: string): void => void checks.push({ area: "hub", status: "warn", message });
  try {
    await withHub(
      invocation,
      async (running) => {
        checks.push(...storeCheck(running.hub), ...sharedStoreCheck(running.hub));
        // Also those that connect only when asked to: this is asking.
        running.connect(running.hub.config.servers.filter((spec) => spec.enabled).map((spec) => spec.id));
        await running.settled();
        checks.push(...skillChecks(running), ...serverChecks(running), ...shadowingChecks(running));
        return 0;
      },
      { config, onWarning },
    );
  } catch (error) {
    const { message, hint } = asToolcribError(error);
    checks.push({ area: "hub", status: "fail", message, hint });
  }
}

const STYLE = { ok: "green", warn: "yellow", fail: "red" } as const;

function show({ out }: Invocation, checks: readonly Check[]): void {
  const width = Math.max(...checks.map((check) => subjectOf(check).length));
  for (const check of checks) {
    const { status, message, hint } = check;
    out.line(`${out.paint(STYLE[status], status.padEnd(4))}  ${subjectOf(check).padEnd(width)}  ${message.trimEnd()}`);
    if (hint !== undefined) out.line(`${" ".repeat(width + 8)}${hint}`);
  }
  const failed = checks.filter((check) => check.status === "fail").length;
  const warned = checks.filter((check) => check.status === "warn").length;
  out.line("");
  out.line(
    failed === 0
      ? `All is well${warned === 0 ? "." : `, with ${count(warned, "warning")}.`}`
      : `${count(failed, "problem")}, ${count(warned, "warning")}.`,
  );
}

function subjectOf(check: Check): string {
  return check.server ?? check.area;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
