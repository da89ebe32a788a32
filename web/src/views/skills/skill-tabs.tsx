import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { SkillDetail } from "../../../../src/contract/skill-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Code } from "../../components/code.tsx";
import { Markdown } from "../../components/markdown.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { bytesText } from "../../text.ts";
import { useOperation } from "../../state/queries.ts";
import { FindingsList, WarningsList } from "./findings-list.tsx";
import { needsOf } from "./skill-words.ts";

interface TabProps {
  readonly skill: SkillDetail;
}

export function InstructionsTab({ skillId }: { readonly skillId: string }) {
  const query = useOperation("getInstructions", { skillId });
  return (
    <Loaded query={query} skeleton={<Skeleton lines={8} label="Loading the instructions" />}>
      {({ instructions }) =>
        instructions.trim() === "" ? (
          <Empty title="It has no instructions" />
        ) : (
          <div
            // It scrolls, so it can be reached by keyboard.
            tabIndex={0}
            role="group"
            aria-label="Instructions"
            className="max-h-[65dvh] overflow-y-auto p-4 -outline-offset-2"
          >
            <Markdown text={instructions} />
          </div>
        )
      }
    </Loaded>
  );
}

export function RequirementsTab({ skill }: TabProps) {
  const needs = needsOf(skill.requires, skill.missing);
  if (needs.length === 0 && skill.servers.length === 0) return <Empty title="No requirements" icon="check" />;
  const rows = [...needs, ...skill.servers.map(({ name, present }) => ({ kind: "MCP server", name, found: present }))];
  return (
    <div className="flex flex-col gap-3 p-4">
      {rows.some((row) => !row.found) && (
        <p className="text-soft">
          Install or set what is missing on the hub's machine. Until then agents are told that the skill may not work.
        </p>
      )}
      <ul aria-label="Requirements" className="divide-y divide-line rounded-md border border-line">
        {rows.map(({ kind, name, found }) => (
          <li key={`${kind} ${name}`} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-3 py-1.5">
            <span className="w-24 text-sm text-faint">{kind}</span>
            <span className="min-w-0 flex-1 font-mono text-sm break-all">{name}</span>
            <Badge tone={found ? "ok" : "warn"}>{found ? "Found" : "Missing"}</Badge>
          </li>
        ))}
      </ul>
    </div>
  );
}

export function FindingsTab({ skill }: TabProps) {
  if (skill.findings.length === 0 && skill.warnings.length === 0)
    return (
      <Empty title="Nothing was found" icon="check">
        The scan found nothing suspicious in its files. Still read the instructions before you rely on it.
      </Empty>
    );
  return (
    <div className="flex flex-col gap-4 p-4">
      {skill.findings.length > 0 && <Part title="In its files">{<FindingsList findings={skill.findings} />}</Part>}
      {skill.warnings.length > 0 && <Part title="When it was read">{<WarningsList warnings={skill.warnings} />}</Part>}
    </div>
  );
}

export function FilesTab({ skill }: TabProps) {
  if (skill.files.length === 0) return <Empty title="No files are known" />;
  return (
    <ul aria-label="Files" className="max-h-[60dvh] divide-y divide-line overflow-y-auto">
      {skill.files.map((file) => (
        <li key={file.path} className="flex items-baseline gap-3 px-4 py-1.5">
          <span className="min-w-0 flex-1 font-mono text-sm break-all">{file.path}</span>
          <span className="text-sm whitespace-nowrap text-faint">{bytesText(file.size)}</span>
        </li>
      ))}
    </ul>
  );
}

export function InjectedTab({ skill }: TabProps) {
  return (
    <div className="flex flex-col gap-5 p-4">
      <Part title="In the list of skills">
        <p className="mb-2 text-soft">
          Every agent that may see the skill has this in its prompt. The instructions it reads when it takes the skill
          up, from <code className="font-mono break-all">{skill.uri}</code>.
        </p>
        <Code text={skill.promptEntry.trimEnd()} label="Entry in the prompt" wrap />
      </Part>
      <Part title="From the start">
        {skill.injectedFor.length === 0 ? (
          <p className="text-soft">
            No role has its instructions in the prompt. Name it under{" "}
            <code className="font-mono break-all">roles.&lt;role&gt;.skills</code> in the config for that.
          </p>
        ) : (
          <div className="flex flex-wrap items-center gap-2 text-soft">
            Agents of these roles have all its instructions in the prompt:
            {skill.injectedFor.map((role) => (
              <Badge key={role} tone="info">
                {role}
              </Badge>
            ))}
          </div>
        )}
      </Part>
      {skill.tools.length > 0 && (
        <Part title="As tools">
          <ul className="flex flex-col gap-1">
            {skill.tools.map((tool) => (
              <li key={tool}>
                <Link to="/tools" search={{ tool }} className="font-mono text-sm break-all text-accent hover:underline">
                  {tool}
                </Link>
              </li>
            ))}
          </ul>
        </Part>
      )}
    </div>
  );
}

function Part({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section>
      <h3 className="mb-1.5 font-semibold">{title}</h3>
      {children}
    </section>
  );
}
