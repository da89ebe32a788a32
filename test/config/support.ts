/** Config files in a folder of their own, loaded with an environment of their own. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { configIn } from "../../src/config/find-config.ts";
import { loadConfig, type LoadOptions } from "../../src/config/load-config.ts";
import { ToolcribError } from "../../src/model/errors.ts";
import type { Diagnostic, LoadedConfig } from "../../src/model/loaded-config.ts";

export const FIXTURES = join(import.meta.dirname, "..", "fixtures", "configs");

export class Workplace {
  readonly dir = mkdtempSync(join(tmpdir(), "toolcrib-config-"));
  readonly home = join(this.dir, "home");

  constructor() {
    onTestFinished(() => rmSync(this.dir, { recursive: true, force: true }));
  }

  /** Writes a file; an object becomes JSON. */
  write(name: string, content: unknown): string {
    const file = join(this.dir, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content, null, 2));
    return file;
  }

  /** The folder's own config is named: one that is found would have to be trusted first. */
  load(options: Partial<LoadOptions> & { env?: NodeJS.ProcessEnv } = {}): Promise<LoadedConfig> {
    const file = configIn(this.dir);
    return loadConfig({ env: {}, cwd: this.dir, home: this.home, ...(options.config ? {} : { file }), ...options });
  }

  /** The problems of a config that must not load. */
  async problems(options: Partial<LoadOptions> = {}): Promise<readonly Diagnostic[]> {
    const error = await this.failure(options);
    // `details.problems` is the documented place of them.
    return error.details?.["problems"] as readonly Diagnostic[];
  }

  /** What is wrong in entries of a config that loads without them. */
  async entryProblems(options: Partial<LoadOptions> = {}): Promise<readonly Diagnostic[]> {
    const { unusable, servers } = await this.load(options);
    for (const id of unusable?.keys() ?? []) expect(servers.find((spec) => spec.id === id)?.problem).toBeDefined();
    return [...(unusable?.values() ?? [])].flat();
  }

  async failure(options: Partial<LoadOptions> = {}): Promise<ToolcribError> {
    try {
      await this.load(options);
    } catch (error) {
      if (error instanceof ToolcribError) return error;
      throw error;
    }
    throw new Error("the config was loaded");
  }
}

/** `code path` of each, which is what most tests compare. */
export function codes(diagnostics: readonly Diagnostic[]): string[] {
  return diagnostics.map(({ code, path }) => `${code} ${path}`);
}
