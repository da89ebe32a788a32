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

/** The parameter of a plugin's `register(api)`. */
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
  /** Unregisters every tool of the plugin, and stops it from registering more. */
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
    throw new ToolcribError("invalid_config", `Plugin ${file}: the file does not exist.`, {
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

/** A plugin that never finishes must not block the hub forever. The timer keeps the process alive until then. */
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
  // The types of a plugin's function are unknown here; awaiting it works for any result.
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
