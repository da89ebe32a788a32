/** Rules for `sandbox` that no schema of single keys can say. */
import type { Config } from "../model/config.ts";
import { cageKindOf, type SandboxEntry } from "../model/sandbox.ts";
import type { ServerEntry } from "../model/server-spec.ts";
import type { ConfigPath } from "./config-path.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { Document } from "./document.ts";

/** Keys that only a container has a use for. */
const OF_CONTAINERS = ["image", "port", "path"] as const;
/** Keys that mean nothing where there is no cage. */
const OF_CAGES = ["read", "write", "memory", "cpus", "pids", "timeout"] as const;

/** What makes the cage of one server unusable. */
export function cageProblems(document: Document, path: ConfigPath, entry: ServerEntry): Diagnostic[] {
  const { sandbox, url } = entry;
  if (sandbox === undefined) return [];
  const at = [...path, "sandbox"];
  if (url !== undefined && cageKindOf(sandbox) !== "none") {
    return [wrong(document, at, "a remote server cannot be caged from here", "remove sandbox, or give a command")];
  }
  return kindProblems(document, at, sandbox);
}

/** What makes a default cage unusable. */
export function defaultCageProblems(
  document: Document,
  { sandbox, skills }: Pick<Config, "sandbox" | "skills">,
): Diagnostic[] {
  return [
    ...(sandbox === undefined ? [] : defaultProblems(document, ["sandbox"], sandbox)),
    ...(skills.sandbox === undefined ? [] : defaultProblems(document, ["skills", "sandbox"], skills.sandbox)),
  ];
}

/** What has no effect. */
export function cageWarnings(document: Document, path: ConfigPath, sandbox: SandboxEntry | undefined): Diagnostic[] {
  if (sandbox === undefined || typeof sandbox === "string" || cageKindOf(sandbox) !== "none") return [];
  return OF_CAGES.filter((key) => sandbox[key] !== undefined).map((key) =>
    document.report([...path, key], {
      severity: "warning",
      code: "unused_key",
      message: `${key} has no effect with kind "none"`,
    }),
  );
}

function defaultProblems(document: Document, path: ConfigPath, sandbox: SandboxEntry): Diagnostic[] {
  const problems = kindProblems(document, path, sandbox);
  if (typeof sandbox === "string") return problems;
  const single = (["port", "path"] as const).filter((key) => sandbox[key] !== undefined);
  return [
    ...problems,
    ...single
      .filter(() => problems.length === 0)
      .map((key) =>
        wrong(document, [...path, key], `${key} belongs to one server, not to a default`, "set it in that entry"),
      ),
  ];
}

function kindProblems(document: Document, path: ConfigPath, sandbox: SandboxEntry): Diagnostic[] {
  if (typeof sandbox === "string") return [];
  const kind = cageKindOf(sandbox);
  if (kind !== "container") {
    return OF_CONTAINERS.filter((key) => sandbox[key] !== undefined).map((key) =>
      wrong(document, [...path, key], `found ${key} with kind "${kind}"; it needs kind "container"`, undefined),
    );
  }
  if (sandbox.path === undefined || sandbox.port !== undefined) return [];
  return [wrong(document, [...path, "path"], "found path without port", "set port to the one that the server is at")];
}

function wrong(document: Document, path: ConfigPath, message: string, hint: string | undefined): Diagnostic {
  return document.report(path, { severity: "error", code: "wrong_sandbox", message, hint });
}
