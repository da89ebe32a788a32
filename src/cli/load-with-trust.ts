/** Loads the config of a command. On a terminal it asks whether to trust a project config that is not trusted yet. */
import type { Diagnostic, LoadedConfig } from "../model/loaded-config.ts";
import { renderDiagnostic } from "../config/config-document.ts";
import { loadConfig, type TrustQuestion, UNTRUSTED } from "../config/load-config.ts";
import { describeProject } from "../config/project-config.ts";
import { terminalLine } from "../base/visible-text.ts";
import type { Invocation } from "./command.ts";
import { readLine } from "./terminal-input.ts";

/** The part of a command that loading a config needs. */
export type ConfigInvocation = Pick<Invocation, "env" | "cwd" | "flags" | "out"> &
  Partial<Pick<Invocation, "stdin" | "attached">>;

export interface LoadingOptions {
  /** False if stdin belongs to a protocol. */
  readonly asks?: boolean;
}

/** Shows only the warning that a project config was not used, so that the command does not seem to have used it. */
export async function loadConfigForStore(invocation: ConfigInvocation): Promise<LoadedConfig> {
  const config = await loadWithTrustPrompt(invocation);
  if (invocation.attached !== undefined) return config;
  showWarnings(
    invocation,
    config.warnings.filter(({ code }) => code === UNTRUSTED),
  );
  return config;
}

export function showWarnings({ out }: Pick<Invocation, "out">, warnings: readonly Diagnostic[]): void {
  for (const warning of warnings) out.warn(renderDiagnostic(warning));
}

export function loadWithTrustPrompt(
  invocation: ConfigInvocation,
  { asks = true }: LoadingOptions = {},
): Promise<LoadedConfig> {
  const { flags, env, cwd, attached } = invocation;
  if (attached !== undefined) return Promise.resolve(attached.hub.config);
  const question = asks ? trustPrompt(invocation) : undefined;
  return loadConfig({ env, cwd, file: flags.text("config"), onUntrusted: question });
}

/** Answers by command, which may load its config more than once. */
const answeredTrust = new WeakMap<object, Map<string, "trust" | "leave">>();

/** Undefined without a terminal, and in scripts that want no questions. */
function trustPrompt({ stdin, out, flags }: ConfigInvocation): TrustQuestion | undefined {
  if (stdin?.isTTY !== true || out.prompts.isTTY !== true) return undefined;
  if (out.json || out.quiet || flags.has("yes")) return undefined;
  const answers = answeredTrust.get(out) ?? new Map<string, "trust" | "leave">();
  answeredTrust.set(out, answers);
  return async (project, state) => {
    const key = `${project.file} ${project.digest}`;
    const known = answers.get(key);
    if (known !== undefined) return known;
    if (project.failure !== undefined) return "leave";
    out.note(
      state === "new"
        ? `This folder has a Toolcrib config that is not trusted: ${terminalLine(project.file)}`
        : `This Toolcrib config has changed since it was trusted: ${terminalLine(project.file)}`,
    );
    const lines = describeProject(project);
    out.note(lines.length === 0 ? "It does not start anything." : "It would start or use:");
    for (const line of lines) out.note(`  ${line}`);
    for (;;) {
      const prompt = "[t]rust this version, or [N]ot now: ";
      const typed = (await readLine(stdin, { prompt, prompts: out.prompts })).trim().toLowerCase();
      const answer = TRUST_ANSWERS[typed];
      if (answer === undefined) continue;
      answers.set(key, answer);
      return answer;
    }
  };
}

const TRUST_ANSWERS: Readonly<Record<string, "trust" | "leave">> = {
  t: "trust",
  trust: "trust",
  y: "trust",
  yes: "trust",
  n: "leave",
  no: "leave",
  not: "leave",
  "not now": "leave",
  "": "leave",
};
