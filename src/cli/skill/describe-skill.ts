/** How commands show a skill: an entry for programs, lines for people. */
import type {
  MissingNeeds,
  RequiredServer,
  SkillDialect,
  SkillFacts,
  SkillFinding,
  SkillNeeds,
  SkillWarning,
} from "../../model/skill.ts";
import { isMet, missingWarnings } from "../../skills/needs.ts";
import type { Output } from "../output.ts";
import { clip, firstLine } from "../table.ts";

/** One skill in `--json`. */
export interface SkillEntry {
  readonly name: string;
  readonly description: string;
  /** The folder. */
  readonly path: string;
  readonly dialect?: SkillDialect;
  readonly version?: string;
  readonly digest?: string;
  readonly requires: SkillNeeds;
  /** The part of `requires` that this machine does not meet. */
  readonly missing: MissingNeeds;
  readonly dependenciesMet: boolean;
  readonly servers: readonly RequiredServer[];
  readonly warnings: readonly SkillWarning[];
  readonly findings: readonly SkillFinding[];
}

interface Checked {
  readonly findings: readonly SkillFinding[];
  readonly missing: MissingNeeds;
}

export function skillEntry(facts: SkillFacts & { readonly dir: string }, { findings, missing }: Checked): SkillEntry {
  return {
    name: facts.name,
    description: facts.description,
    path: facts.dir,
    dialect: facts.dialect,
    version: facts.version,
    digest: facts.digest,
    requires: facts.needs,
    missing,
    dependenciesMet: isMet(missing),
    servers: facts.servers,
    warnings: [...facts.warnings, ...missingWarnings(missing)],
    findings,
  };
}

const NOTHING: MissingNeeds = { bins: [], anyBins: [], env: [], config: [], os: [], servers: [] };

/** For a skill that could not be read. It has the same fields, so that programs need no special case. */
export function unreadableEntry({ name, path }: { readonly name: string; readonly path: string }): SkillEntry {
  return {
    name,
    description: "",
    path,
    requires: NOTHING,
    missing: NOTHING,
    dependenciesMet: false,
    servers: [],
    warnings: [],
    findings: [],
  };
}

const MAX_DESCRIPTION_LENGTH = 160;
const LABEL_WIDTH = 10;

/** The lines below a skill's name. Its texts are untrusted, so hidden characters are shown. */
export function detailLines(out: Output, entry: SkillEntry): string[] {
  const { description, requires, missing, servers, warnings, findings } = entry;
  const lines = [plain(description)];
  const needs = needsText(out, requires, missing);
  if (needs !== "") lines.push(labelled("requires", needs));
  if (servers.length > 0)
    lines.push(labelled("servers", servers.map((server) => neededServer(out, server, missing)).join(", ")));
  // What is missing is marked among the needs and servers.
  for (const warning of warnings.filter(({ code }) => !code.startsWith("MISSING_")))
    lines.push(labelled("warning", warningText(warning)));
  for (const finding of findings) {
    const style = finding.severity === "refuse" ? "red" : finding.severity === "warn" ? "yellow" : "dim";
    lines.push(out.paint(style, labelled(finding.severity, findingText(finding))));
  }
  return lines.filter((line) => line !== "").map((line) => `  ${line}`);
}

function neededServer(out: Output, server: RequiredServer, { servers }: MissingNeeds): string {
  const isMissing = servers.includes(server.name);
  return isMissing ? `${serverText(server)} ${out.paint("yellow", "(needs setup)")}` : serverText(server);
}

export function labelled(label: string, text: string): string {
  return `${label.padEnd(LABEL_WIDTH)}${text}`;
}

/** Such as `curl, env TOKEN (missing), one of gh, hub`; empty if it needs nothing. */
export function needsText(out: Output, needs: SkillNeeds, missing: MissingNeeds): string {
  const mark = (text: string, isMissing: boolean): string =>
    isMissing ? `${plain(text)} ${out.paint("yellow", "(missing)")}` : plain(text);
  return [
    ...needs.bins.map((name) => mark(name, missing.bins.includes(name))),
    ...(needs.anyBins.length === 0 ? [] : [mark(`one of ${needs.anyBins.join(", ")}`, missing.anyBins.length > 0)]),
    ...needs.env.map((name) => mark(`env ${name}`, missing.env.includes(name))),
    ...needs.config.map((path) => mark(`OpenClaw config ${path}`, missing.config.includes(path))),
    ...(needs.os.length === 0 ? [] : [mark(`system ${needs.os.join(" or ")}`, missing.os.length > 0)]),
  ].join(", ");
}

export function serverText({ name, package: reference }: RequiredServer): string {
  return plain(reference === undefined || reference === name ? name : `${name} (${reference})`);
}

export function warningText({ code, message, line }: SkillWarning): string {
  return plain(`SKILL.md${line === undefined ? "" : `:${line}`}: ${code} ${message}`, Infinity);
}

export function findingText({ code, message, file, line }: SkillFinding): string {
  return plain(`${file}${line === undefined ? "" : `:${line}`}: ${code} ${message}`, Infinity);
}

/** The first line of a text, with hidden characters shown. */
export function plain(text: string, longest = MAX_DESCRIPTION_LENGTH): string {
  const shown = firstLine(text);
  return longest === Infinity ? shown : clip(shown, longest);
}
