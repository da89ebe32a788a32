/** The sources that sessions brought, by id, for the parts of a hub that know a capability only by its origin. */
import type { ToolRules } from "../../model/tool-rules.ts";
import type { ServerConnection } from "../../upstream/server-connection.ts";

export interface OwnSource {
  /** As the client named it. */
  readonly name: string;
  /** Where its rules stand, for a person. */
  readonly where: string;
  /** Those of its own entry. */
  readonly rules?: ToolRules | undefined;
  /** Not of in-process tools. */
  readonly connection?: ServerConnection | undefined;
  isOwnerOnly(toolName: string): boolean;
}

export class OwnSources {
  readonly #sources = new Map<string, OwnSource>();
  readonly #suffixes = new Set<string>();

  /** What the ids of a session's sources end in: the beginning of its id, as much of it as nobody else has. */
  claim(sessionId: string): string {
    let length = 8;
    while (length < sessionId.length && this.#suffixes.has(sessionId.slice(0, length))) length += 1;
    const suffix = sessionId.slice(0, length);
    this.#suffixes.add(suffix);
    return suffix;
  }

  release(suffix: string): void {
    this.#suffixes.delete(suffix);
  }

  add(id: string, source: OwnSource): void {
    this.#sources.set(id, source);
  }

  delete(id: string): void {
    this.#sources.delete(id);
  }

  get(id: string): OwnSource | undefined {
    return this.#sources.get(id);
  }
}
