/** The entries that an install would add, filled in and checked, before anything is written or started. */
import { ToolcribError } from "../../model/errors.ts";
import type { ServerEntryInput } from "../../model/server-spec.ts";
import type { SkillFinding } from "../../model/skill.ts";
import { keychainReference } from "../../secrets/store-secret.ts";
import { entryFindings } from "./entry-findings.ts";
import type { InstallPlace } from "./install-place.ts";
import { secretName } from "./kept-secrets.ts";
import { previewValues, resolveServers } from "./new-servers.ts";
import type { ParameterValues } from "./parameters.ts";
import type { PlannedServer } from "./required-servers.ts";

export interface CheckedEntry {
  readonly id: string;
  /** With references in the place of secrets. */
  readonly entry: ServerEntryInput;
  readonly findings: readonly SkillFinding[];
}

/** Throws `blocked` for an entry that must not be started, unless it is forced. */
export function checkEntries(
  servers: readonly PlannedServer[],
  place: InstallPlace,
  { values, force }: { readonly values: ParameterValues; readonly force: boolean },
): CheckedEntry[] {
  const { added } = resolveServers(servers, place, (server) =>
    previewValues(server, values, (parameter) => keychainReference(secretName(server.id, parameter))),
  );
  const checked = added.map(({ planned: { id }, entry }) => ({ id, entry, findings: entryFindings(id, entry) }));
  const refused = checked.flatMap(({ findings }) => findings.filter(({ severity }) => severity === "refuse"));
  if (refused.length === 0 || force) return checked;
  throw new ToolcribError(
    "blocked",
    `What the skill would start is refused:\n${refused.map((finding) => `  ${findingText(finding)}`).join("\n")}`,
    {
      hint: "Nothing was installed. If you know what it does and want it all the same: --force.",
      details: { findings: refused },
    },
  );
}

export function findingText({ file, code, message, excerpt }: SkillFinding): string {
  return `${file}: ${code}: ${message}${excerpt === undefined ? "" : ` (${excerpt})`}`;
}
