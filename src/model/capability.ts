import type { PromptDefinition, ResourceDefinition, ResourceTemplateDefinition, ToolDefinition } from "./protocol.ts";

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
  /** Exactly what the source sent, but for masked secrets. */
  readonly definition: Definition;
  /** SHA-256 (hex) of the canonical JSON of the definition. */
  readonly fingerprint: string;
}

export type ToolCapability = CapabilityBase<"tool", ToolDefinition>;
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
