/** Overrides of servers' tools for an operator: a tool as it is, as it would be, and the change where its server is written. */
import type { Catalog } from "../../catalog/catalog.ts";
import { NamePattern } from "../../catalog/naming.ts";
import { shapeDefinition } from "../../catalog/overrides.ts";
import { setOverride } from "../../config/edit-config.ts";
import { originalOf, type ToolCapability } from "../../model/capability.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { ToolDefinition } from "../../model/protocol.ts";
import { type ServerSpec, type ToolOverride, ToolOverrideSchema } from "../../model/server-spec.ts";
import type { CurrentWiring } from "../create/wiring.ts";
import type { Reloader } from "../reload/reloader.ts";
import { definitionTokens } from "../view/token-costs.ts";
import type { ServerRegistry } from "./server-registry.ts";
import { STORE_DIALECT } from "./stored-servers.ts";

interface ToolOverridesOptions {
  readonly catalog: Catalog;
  readonly current: CurrentWiring;
  readonly reloader: Reloader;
  readonly servers: Pick<ServerRegistry, "update">;
}

/** A definition and what it costs a model to have it. */
export interface PricedDefinition {
  readonly name: string;
  readonly definition: ToolDefinition;
  /** Estimated. */
  readonly tokens: number;
}

export interface OverriddenTool {
  readonly server: string;
  /** Its name at the server. */
  readonly tool: string;
  /** That of its server's entry. */
  readonly override: ToolOverride;
  readonly original: PricedDefinition;
  readonly effective: PricedDefinition;
  readonly misfit: string | undefined;
  /** The file or store in which it can be changed. */
  readonly where: string;
}

export class ToolOverrides {
  readonly #options: ToolOverridesOptions;

  constructor(options: ToolOverridesOptions) {
    this.#options = options;
  }

  /**
   * A tool by its public name, also one that is held or hidden, with another override in place of its own if one is given.
   * @param override As it was given, unchecked.
   */
  preview(name: string, override?: unknown): OverriddenTool {
    const { capability, spec } = this.#find(name);
    const { origin } = capability;
    const original = originalOf(capability);
    const present = spec.overrides?.[origin.name] ?? {};
    const chosen = override === undefined ? present : checkedOverride(override);
    const { definition, misfit } = shapeDefinition(original.definition, chosen);
    const pattern = new NamePattern(this.#options.current.config.config.tools.naming, spec.id, spec.toolPrefix);
    const publicName = chosen.name === undefined ? original.name : pattern.render(chosen.name);
    return {
      server: spec.id,
      tool: origin.name,
      override: chosen,
      original: priced(original.name, original.definition),
      effective: priced(publicName, definition),
      misfit,
      where: spec.origin.file,
    };
  }

  /** Writes the override where the server is written, and applies it. An empty one is taken out. */
  async set(name: string, override: unknown): Promise<OverriddenTool> {
    const changed = this.preview(name, override);
    const { server, tool, misfit } = changed;
    if (misfit !== undefined) {
      throw new ToolcribError("invalid_arguments", `The override does not fit ${name}: ${misfit}.`, {
        hint: "Compare it with the server's own definition.",
      });
    }
    const { spec } = this.#find(name);
    const isEmpty = Object.keys(changed.override).length === 0;
    const { file } = this.#options.current.config;
    if (spec.origin.dialect === STORE_DIALECT) {
      await this.#options.servers.update(server, { overrides: { [tool]: isEmpty ? null : changed.override } });
    } else if (file !== null && spec.origin.file === file && spec.replaces === undefined) {
      await setOverride(file, ["mcpServers", server], tool, isEmpty ? undefined : changed.override);
      await this.#options.reloader.reload();
    } else {
      throw new ToolcribError(
        "conflict",
        `The server "${server}" comes from ${spec.origin.file}, which is not edited here.`,
        {
          hint: "Write the override there, or below a role or a view of your config.",
          details: { file: spec.origin.file },
        },
      );
    }
    return changed;
  }

  #find(name: string): { readonly capability: ToolCapability; readonly spec: ServerSpec } {
    const { tools } = this.#options.catalog.snapshot();
    const capability = this.#options.catalog.find(name) ?? tools.find(({ shape }) => shape?.original.name === name);
    if (capability === undefined) throw new ToolcribError("not_found", `There is no tool "${name}".`);
    const spec = this.#options.current.config.servers.find(({ id }) => id === capability.origin.source);
    if (spec !== undefined) return { capability, spec };
    throw new ToolcribError("conflict", `${name} is not a tool of a server, so only a role or a view can override it.`);
  }
}

function checkedOverride(given: unknown): ToolOverride {
  const { data, error } = ToolOverrideSchema.safeParse(given);
  if (data !== undefined) return data;
  const problems = error.issues.map(({ path, message }) => `${path.join(".") || "override"}: ${message}`);
  throw new ToolcribError("invalid_arguments", `The override cannot be used: ${problems.join("; ")}.`);
}

function priced(name: string, definition: ToolDefinition): PricedDefinition {
  return { name, definition, tokens: definitionTokens(name, definition) };
}
