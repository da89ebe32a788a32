/** Plugins: modules named in the config whose default export registers in-process tools. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject } from "../model/json.ts";
import type { Tool } from "../model/tool.ts";
import { VERSION } from "../model/version.ts";
import type { ToolFactory, ToolRegistry } from "./tool-registry.ts";

export interface PluginLogger {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** What a plugin's `register(api)` is given. */
export interface PluginApi {
  /** Version of Toolcrib. */
  readonly version: string;
  readonly logger?: PluginLogger;
  /** Throws for a tool that cannot be registered; with `optional` that is a warning. The result unregisters it. */
  registerTool(tool: Tool | ToolFactory, options?: { readonly optional?: boolean }): () => void;
}

export type RegisterPlugin = (api: PluginApi) => void | Promise<void>;

export interface PluginOptions {
  /** Paths are relative to this folder. */
  readonly baseDir: string;
  readonly registry: ToolRegistry;
  readonly warn: (message: string) => void;
  readonly logger?: PluginLogger;
}

export interface PluginHandle {
  readonly file: string;
  /** Takes every tool of the plugin out again, and lets it register no more. */
  unregister(): void;
}

/** One after the other, so that tools keep the order of the config. If one plugin fails, none stays. */
export async function loadPlugins(paths: readonly string[], options: PluginOptions): Promise<PluginHandle[]> {
  const loaded: PluginHandle[] = [];
  const stopWarnings = options.registry.on("warning", ({ message }) => options.warn(message));
  try {
    for (const path of paths) loaded.push(await loadPlugin(resolve(options.baseDir, path), options));
    return loaded;
  } catch (error) {
    for (const plugin of loaded.toReversed()) plugin.unregister();
    throw error;
  } finally {
    stopWarnings();
  }
}

async function loadPlugin(file: string, options: PluginOptions): Promise<PluginHandle> {
  if (!existsSync(file)) {
    throw new ToolcribError("invalid_config", `Plugin ${file}: there is no such file.`, {
      hint: 'Paths in "plugins" are relative to the config file.',
    });
  }
  const tools = new PluginTools(file, options);
  try {
    const register = registerFunction(await import(pathToFileURL(file).href));
    await withRegisterTimeout(register(tools.api));
  } catch (error) {
    tools.unregister();
    const message = error instanceof Error ? error.message : String(error);
    const hint = error instanceof ToolcribError ? error.hint : undefined;
    throw new ToolcribError("invalid_config", `Plugin ${file}: ${message}`, { hint, cause: error });
  }
  return tools;
}

const MAX_REGISTER_MS = 30_000;

/** A plugin that never finishes must not hold the hub up for ever. */
async function withRegisterTimeout(registered: void | Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const message = `its register(api) did not finish within ${MAX_REGISTER_MS / 1000} s.`;
    timer = setTimeout(() => reject(new ToolcribError("invalid_config", message)), MAX_REGISTER_MS);
  });
  try {
    await Promise.race([registered, late]);
  } finally {
    clearTimeout(timer);
  }
}

function registerFunction(module: unknown): RegisterPlugin {
  const exported: unknown = isJsonObject(module) ? module["default"] : undefined;
  const register = isJsonObject(exported) ? exported["register"] : exported;
  if (typeof register !== "function") {
    throw new ToolcribError("invalid_config", "its default export is neither register(api) nor { register(api) }.");
  }
  // What a plugin's function takes and gives cannot be seen from here; awaiting it is right for any result.
  return (api) => register.call(exported, api) as void | Promise<void>;
}

class PluginTools implements PluginHandle {
  readonly file: string;
  readonly api: PluginApi;
  readonly #options: PluginOptions;
  readonly #undo: (() => void)[] = [];
  #open = true;

  constructor(file: string, options: PluginOptions) {
    this.file = file;
    this.#options = options;
    this.api = {
      version: VERSION,
      logger: options.logger,
      registerTool: (tool, { optional = false } = {}) => this.#register(tool, optional),
    };
  }

  unregister(): void {
    this.#open = false;
    for (const undo of this.#undo.splice(0).toReversed()) undo();
  }

  #register(tool: Tool | ToolFactory, optional: boolean): () => void {
    if (!this.#open) throw new ToolcribError("conflict", `Plugin ${this.file} is no longer loaded.`);
    try {
      const { registry } = this.#options;
      const undo =
        typeof tool === "function"
          ? registry.registerFactory(tool, { label: `A tool factory of plugin ${this.file}` })
          : registry.register(tool);
      this.#undo.push(undo);
      return undo;
    } catch (error) {
      if (!optional) throw error;
      const message = error instanceof Error ? error.message : String(error);
      this.#options.warn(`Plugin ${this.file}: an optional tool is left out: ${message}`);
      return () => {};
    }
  }
}
