import type { PromptDefinition, ResourceDefinition, ResourceTemplateDefinition, ToolDefinition } from "./protocol.ts";
import type { ToolOverride } from "./server-spec.ts";

/** Where a capability comes from and what it is called there. */
export interface CapabilityOrigin {
  /** Source id: the server id, or `local` for in-process tools. */
  readonly source: string;
  /** The source's own name or URI. */
  readonly name: string;
}

interface CapabilityBase<Kind extends string, Definition> {
  readonly kind: Kind;
  /** The one public name (tools, prompts) or URI (resources, templates) at every door. */
  readonly name: string;
  readonly origin: CapabilityOrigin;
  /** Exactly what the source sent, but for masked secrets; of a tool with a shape, as callers see it. */
  readonly definition: Definition;
  /** SHA-256 (hex) of the canonical JSON of the definition; of a tool with a shape, of the original and its overrides. */
  readonly fingerprint: string;
}

export interface ToolCapability extends CapabilityBase<"tool", ToolDefinition> {
  /** How the config changed it; absent if it did not. */
  readonly shape?: ToolShape;
}

/** A tool as callers see it, against what its source offers. */
export interface ToolShape {
  /** The tool as its source defines it, under the public name that it has without overrides: what is pinned and scanned. */
  readonly original: ToolCapability;
  /** The overrides, in the order in which they apply to the definition; arguments pass them the other way round. */
  readonly layers: readonly ShapeLayer[];
  /** Its name at its server, after the override of the server. */
  readonly ownName: string;
  /** Whether its public name is a role's or a view's choice. */
  readonly isRenamed: boolean;
  /** Public names that it has without some of the overrides: rules on them apply, too. */
  readonly formerNames: readonly string[];
}

export interface ShapeLayer {
  readonly override: ToolOverride;
  /** Where the override is written, for a person. */
  readonly where: string;
  readonly level: "server" | "role" | "session";
  /** Why it does not fit the definition. Such a tool is held: what the override was to fix could be free. */
  readonly misfit?: string | undefined;
}

/** The tool as its source defines it. */
export function originalOf<C extends Capability>(capability: C): C | ToolCapability {
  return capability.kind === "tool" ? (capability.shape?.original ?? capability) : capability;
}
export type ResourceCapability = CapabilityBase<"resource", ResourceDefinition>;
export type TemplateCapability = CapabilityBase<"template", ResourceTemplateDefinition>;
export type PromptCapability = CapabilityBase<"prompt", PromptDefinition>;

/** One tool, resource, resource template or prompt. */
export type Capability = ToolCapability | ResourceCapability | TemplateCapability | PromptCapability;

/** Source ids of tools that run in this process: the hub's own, and those that a session brings. */
export const LOCAL_SOURCE = "local";

/** No id of a server has a colon. */
const SESSION_PREFIX = `${LOCAL_SOURCE}:`;

export function sessionLocalSource(session: string): string {
  return `${SESSION_PREFIX}${session}`;
}

export function isSessionLocalSource(source: string): boolean {
  return source.startsWith(SESSION_PREFIX);
}

export function isLocalSource(source: string): boolean {
  return source === LOCAL_SOURCE || isSessionLocalSource(source);
}
