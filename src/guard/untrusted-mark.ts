/** What a result says of itself under `_meta`: that it is untrusted, where it came from, what was found in it. */
import { type Finding, FINDING_CODES, SEVERITIES } from "../model/finding.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Result } from "../model/protocol.ts";
import { isBoundaryId } from "./wrap/wrap.ts";

/** Under this key of `_meta` stands what is known of untrusted content. */
export const UNTRUSTED_KEY = "toolcrib/untrusted";

/** Keys of `_meta` that are ours alone. Those that a server sends are dropped. */
const OWN_PREFIX = "toolcrib/";

/** What was found, without where: each pair of code and severity once. */
export type FoundKind = Pick<Finding, "code" | "severity">;

export interface UntrustedMark {
  readonly server: string;
  readonly tool: string;
  readonly wrapped: boolean;
  /** The id of the boundary, where texts are wrapped. */
  readonly boundary?: string;
  readonly findings: readonly FoundKind[];
}

export function marked(result: Result, mark: UntrustedMark): Result {
  const meta = isJsonObject(result["_meta"]) ? result["_meta"] : {};
  // Spelled out: with a computed key the engine builds each such object in its slowest way.
  return { ...result, _meta: { ...meta, "toolcrib/untrusted": mark } satisfies Record<typeof UNTRUSTED_KEY, unknown> };
}

/** The mark of a result. Trusted sources may write what they like under its key, so its shape is looked at. */
export function markOf(result: Result | undefined): UntrustedMark | undefined {
  const meta = result?.["_meta"];
  const mark = isJsonObject(meta) ? meta[UNTRUSTED_KEY] : undefined;
  if (!isJsonObject(mark)) return undefined;
  const { server, tool, wrapped, boundary, findings } = mark;
  if (typeof server !== "string" || typeof tool !== "string" || !Array.isArray(findings)) return undefined;
  return {
    server,
    tool,
    wrapped: wrapped === true,
    ...(wrapped === true && typeof boundary === "string" && isBoundaryId(boundary) ? { boundary } : {}),
    findings: findings.filter(isFoundKind),
  };
}

export function kindsOf(findings: readonly Finding[]): FoundKind[] {
  const kinds = new Map<string, FoundKind>();
  for (const { code, severity } of findings) kinds.set(`${code} ${severity}`, { code, severity });
  return [...kinds.values()];
}

export function hasOwnKeys(meta: JsonObject): boolean {
  return Object.keys(meta).some((key) => key.startsWith(OWN_PREFIX));
}

export function withoutOwnKeys(meta: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(meta).filter(([key]) => !key.startsWith(OWN_PREFIX)));
}

function isFoundKind(value: unknown): value is FoundKind {
  if (!isJsonObject(value)) return false;
  const { code, severity } = value;
  return FINDING_CODES.some((known) => known === code) && SEVERITIES.some((known) => known === severity);
}
