import { asToolcribError } from "../../model/errors.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import type { Invocation } from "../command.ts";
import { loadQuietly } from "../command-config.ts";
import {
  type Check,
  configCheck,
  configErrorCheck,
  homeCheck,
  nodeCheck,
  storeCheck,
} from "../doctor/machine-checks.ts";
import { serverChecks } from "../doctor/server-checks.ts";
import { shadowingChecks } from "../doctor/shadowing-checks.ts";
import { skillChecks } from "../doctor/skill-checks.ts";
import { withHub } from "../running-hub.ts";

/** Exits 0 when nothing failed; warnings are told and harm nothing. */
export async function run(invocation: Invocation): Promise<number> {
  const checks: Check[] = [nodeCheck(process.versions.node), homeCheck(invocation.env)];
  const config = await load(invocation, checks);
  if (config !== undefined) await checkServers(invocation, config, checks);
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

async function checkServers(invocation: Invocation, config: LoadedConfig, checks: Check[]): Promise<void> {
  const onWarning = (message: string): void => void checks.push({ area: "hub", status: "warn", message });
  try {
    await withHub(
      invocation,
      async (running) => {
        checks.push(...storeCheck(running.hub));
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
    checks.push({ area: "hub", status: "fail", message, ...(hint === undefined ? {} : { hint }) });
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
