/** `toolcrib skill list` and `toolcrib skill show <name>`. */
import { ToolcribError } from "../../model/errors.ts";
import type { MissingNeeds, RequiredServer, ServerParameter, SkillFile, SkillInstallStep } from "../../model/skill.ts";
import type { SkillRegistry } from "../../skills/registry/skill-registry.ts";
import type { Invocation } from "../command.ts";
import type { Output } from "../output.ts";
import type { Column } from "../table.ts";
import { findingText, labelled, needsText, plain, serverText, warningText } from "./describe-skill.ts";
import { listSkills, requireListedSkill, type SkillStatus, withRegistry } from "./known-skills.ts";

export async function runShow(invocation: Invocation): Promise<number> {
  const { args, out } = invocation;
  const [name] = args;
  if (name === undefined || args.length > 1) {
    throw new ToolcribError("invalid_arguments", "Name one skill to show.", {
      hint: "Run toolcrib skill list to see all skills.",
    });
  }
  const showNamed = async (registry: SkillRegistry): Promise<number> => {
    const skill = requireListedSkill(await listSkills(invocation, registry), name);
    const { dir } = skill;
    const location = dir === undefined ? skill.sourcePath : registry.fileOf({ ...skill, dir }, ".");
    if (out.json) out.value({ ...skill, location });
    else show(out, skill, location);
    return 0;
  };
  return withRegistry(invocation, showNamed, { readOnly: true });
}

function show(out: Output, skill: SkillStatus, location: string): void {
  const { facts } = skill;
  out.line(`${out.paint("bold", plain(skill.name))}  ${plain(skill.description, Infinity)}`);
  const rows: readonly (readonly [string, string | undefined])[] = [
    ["id", skill.id],
    ["version", `${skill.version} by ${skill.author}`],
    ["license", facts.license],
    ["for", facts.compatibility],
    ["homepage", facts.homepage],
    ["source", skill.source],
    ["from", `${skill.from}${sourceWords(skill)}`],
    ["offered", skill.origin === "folder" ? "directly from its folder, which is in skills.dirs" : undefined],
    ["imported", skill.importedAt],
    ["location", location],
    ["digest", skill.digest],
    ["tools", skill.tools.map((tool) => tool.name).join(", ") || undefined],
    ["may use", facts.allowedTools.join(", ") || undefined],
    ["agents", facts.disableModelInvocation ? "only on request of a person" : undefined],
    ["people", facts.userInvocable ? undefined : "cannot call it by name"],
  ];
  for (const [label, text] of rows) if (text !== undefined) out.line(`  ${labelled(label, plain(text, Infinity))}`);
  const needs = needsText(out, facts.needs, skill.missing);
  out.line(`  ${labelled("requires", needs === "" ? "nothing on this machine" : needs)}`);
  if (skill.status !== "ready") out.line(`  ${labelled("status", statusOf(skill))}`);
  if (skill.setup !== undefined) out.line(`  ${labelled("set up", skill.setup)}`);
  section(out, "MCP servers", facts.servers.flatMap(serverLines));
  section(out, "Install steps from its author (shown, never run)", facts.install.map(stepLine));
  section(out, "Files", facts.files.map(fileLine));
  section(out, "Warnings", skill.warnings.map(warningText));
  section(
    out,
    "Scan findings",
    skill.findings.map((each) => `${each.severity} ${findingText(each)}`),
  );
}

function section(out: Output, title: string, lines: readonly string[]): void {
  if (lines.length === 0) return;
  out.line(`  ${out.paint("bold", title)}`);
  for (const line of lines) out.line(`    ${line}`);
}

function sourceWords({ sourceState }: SkillStatus): string {
  if (sourceState === "changed") return " (changed; run toolcrib skill update)";
  return sourceState === "gone" ? " (gone)" : "";
}

function serverLines(server: RequiredServer): string[] {
  const purpose = server.description === undefined ? "" : `: ${plain(server.description)}`;
  const docker = server.docker === undefined ? "" : `, or as container ${plain(server.docker.image)}`;
  return [`${serverText(server)}${purpose}${docker}`, ...server.parameters.map((each) => `  ${parameterLine(each)}`)];
}

function parameterLine({ name, description, required, sensitive, default: value, example }: ServerParameter): string {
  const words = [
    required ? "required" : "optional",
    ...(sensitive ? ["secret"] : []),
    ...(value === undefined ? [] : [`default ${value}`]),
    ...(example === undefined || sensitive ? [] : [`such as ${example}`]),
  ];
  return plain(`${name} (${words.join(", ")})${description === undefined ? "" : `: ${description}`}`, Infinity);
}

function stepLine({ kind, label, bins, step }: SkillInstallStep): string {
  const gives = bins.length === 0 ? "" : `, provides ${bins.join(", ")}`;
  const { kind: _kind, label: _label, bins: _bins, ...rest } = step;
  const details = Object.keys(rest).length === 0 ? "" : ` ${JSON.stringify(rest)}`;
  return plain(`${kind}${label === undefined ? "" : `: ${label}`}${gives}${details}`, Infinity);
}

function fileLine({ path, size, executable }: SkillFile): string {
  return plain(`${path}  ${size} bytes${executable ? ", executable" : ""}`, Infinity);
}

const COLUMNS: readonly Column<SkillStatus>[] = [
  { title: "NAME", cell: ({ name }) => plain(name) },
  { title: "STATUS", cell: statusOf },
  { title: "FROM", cell: ({ from }) => from, shrink: true },
  { title: "DESCRIPTION", cell: ({ description }) => plain(description), shrink: true },
];

/** Shown if several skills have the same name. */
const ID_COLUMN: Column<SkillStatus> = { title: "ID", cell: ({ id }) => id };

export async function runList(invocation: Invocation): Promise<number> {
  const { out } = invocation;
  const skills = await withRegistry(invocation, (registry) => listSkills(invocation, registry), { readOnly: true });
  if (out.json) out.value(skills);
  else if (skills.length === 0) {
    out.note("There are no skills. Import some with toolcrib skill import <folder>, or add a folder to skills.dirs.");
  } else {
    const shared = new Set(skills.map(({ name }) => name)).size < skills.length;
    const inOrder = skills.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    out.table(shared ? [...COLUMNS.slice(0, 1), ID_COLUMN, ...COLUMNS.slice(1)] : COLUMNS, inOrder);
    for (const { name, setup } of inOrder) if (setup !== undefined) out.note(`Set up ${plain(name)} with ${setup}`);
    if (skills.some(({ status }) => status === "broken")) {
      out.note("Import broken skills again, or remove them with toolcrib skill remove.");
    }
    if (skills.some(({ outdated }) => outdated)) out.note("Update outdated skills with toolcrib skill update.");
  }
  return 0;
}

function statusOf({ missing, status, sourceState }: SkillStatus): string {
  if (status === "broken") return "broken";
  const words = [
    status === "ready" ? "ready" : status === "missing" ? `missing ${namesOf(missing)}` : setupText(missing),
  ];
  if (sourceState === "changed") words.push("outdated");
  if (sourceState === "gone") words.push("source gone");
  return words.join(", ");
}

function setupText(missing: MissingNeeds): string {
  const others = namesOf(missing);
  const servers = missing.servers.map((name) => plain(name)).join(" ");
  return `needs_setup ${servers}${others === "" ? "" : `, missing ${others}`}`;
}

function namesOf({ bins, anyBins, env, config, os }: MissingNeeds): string {
  return [
    ...bins,
    ...(anyBins.length === 0 ? [] : [anyBins.join("|")]),
    ...env.map((name) => `$${name}`),
    ...config,
    ...(os.length === 0 ? [] : [os.join("|")]),
  ]
    .map((name) => plain(name))
    .join(" ");
}
