/**
 * What is suspicious about the entry of a server when its values are filled in: the scan of a skill sees templates, and
 * what runs is this. Nothing around it can excuse a finding here, since no line of it is an example.
 */
import { excerptOf } from "../../guard/detect/show-hidden.ts";
import { scanTexts } from "../../guard/scan-texts.ts";
import type { ServerEntryInput } from "../../model/server-spec.ts";
import type { SkillFinding } from "../../model/skill.ts";
import { parseSkill } from "../../skills/read/read-skill.ts";
import { guardSigns } from "../../skills/scan/rules/guard-findings.ts";
import { signsOf } from "../../skills/scan/rules/rule.ts";
import { RULES } from "../../skills/scan/rules/rules.ts";
import { scannedText } from "../../skills/scan/scanned-text.ts";
import type { Subject } from "../../skills/scan/subject.ts";
import { hiddenProgram, type Launch, launchOf, startedText } from "./launch.ts";
import { loadsOther } from "./loading-variables.ts";

type Draft = Pick<SkillFinding, "code" | "severity" | "message"> & { readonly excerpt?: string };

/** In no order of severity. `file` of each is `server <id>`; no finding holds a value of the environment. */
export function entryFindings(id: string, entry: ServerEntryInput): SkillFinding[] {
  const launch = launchOf(entry);
  const found = new Map<string, SkillFinding>();
  for (const draft of [...variables(launch), ...programs(launch), ...texts(entry, launch)]) {
    const finding: SkillFinding = { ...draft, file: `server ${id}` };
    found.set(`${finding.code} ${finding.message}`, finding);
  }
  return [...found.values()];
}

function variables({ env }: Launch): Draft[] {
  return env.flatMap(([name, value]): Draft[] => {
    const severity = loadsOther(name, value);
    if (severity === undefined) return [];
    return [
      {
        code: "loading_variable",
        severity,
        message: `The variable ${excerptOf(name, 0, name.length)} changes what a program loads or runs.`,
      },
    ];
  });
}

function programs(launch: Launch): Draft[] {
  const hidden = hiddenProgram(launch);
  if (hidden === undefined) return [];
  const { program, text, isEncoded } = hidden;
  return [
    {
      code: "shell_command",
      severity: isEncoded ? "refuse" : "warn",
      message: isEncoded
        ? `${program} runs a program that is encoded, so that nobody can read it.`
        : `${program} runs a program that stands in an argument.`,
      excerpt: excerptOf(text, 0, text.length),
    },
  ];
}

/** The line as it would be typed, and what a shell or an interpreter reads, without the quoting around it. */
function texts(entry: ServerEntryInput, launch: Launch): Draft[] {
  const lines = [startedText(entry), hiddenProgram(launch)?.text ?? "", entry.url ?? ""];
  return lines.flatMap((line) => (line === "" ? [] : scanned(line)));
}

function scanned(line: string): Draft[] {
  const text = scannedText("entry.sh", "script", line);
  const skill = { ...parseSkill(new TextEncoder().encode("# A server"), "server"), dir: "" };
  const subject: Subject = { skill, document: text, security: false, isOwn: () => false };
  const signs = [
    ...RULES.flatMap((rule) => [...signsOf(rule, text, subject)]),
    ...guardSigns(text, scanTexts([text.raw]).get(text.raw) ?? []),
  ];
  return signs.map(({ code, severity, message, near = line }) => ({
    code,
    severity,
    message,
    excerpt: excerptOf(near, 0, near.length),
  }));
}
