/** References looked up with an environment, a home and programs of the test's own. */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { ToolcribError } from "../../src/model/errors.ts";
import type { LookUpOptions, SecretsOptions } from "../../src/secrets/secrets.ts";
import { Secrets } from "../../src/secrets/secrets.ts";

export class Place {
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-secrets-")));
  readonly home = join(this.dir, "toolcrib");

  constructor() {
    onTestFinished(() => rmSync(this.dir, { recursive: true, force: true }));
  }

  write(name: string, content: string | Uint8Array, mode = 0o600): string {
    const file = join(this.dir, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    chmodSync(file, mode);
    return file;
  }

  /** A program for PATH, as a Node script: it has `argv`, `env` and, as `input`, what was given on stdin. */
  program(name: string, script: string): void {
    const head = `#!${process.execPath}\nconst argv = process.argv.slice(2), env = process.env, print = (text) => process.stdout.write(text);\n`;
    const body = `const input = require("node:fs").readFileSync(0, "utf8");\n${script}\n`;
    this.write(`bin/${name}`, head + body, 0o755);
  }

  /** Only what the test puts there: no `aws` or `gcloud` of the machine is found by chance. */
  env(more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
    return { HOME: this.dir, PATH: [join(this.dir, "bin"), "/nowhere"].join(delimiter), ...more };
  }

  secrets(env: NodeJS.ProcessEnv = {}, more: Partial<SecretsOptions> = {}): Secrets {
    return new Secrets({ env: this.env(env), home: this.home, ...more });
  }

  async value(
    text: string,
    env: NodeJS.ProcessEnv = {},
    more: Partial<SecretsOptions> = {},
    options: LookUpOptions = {},
  ): Promise<string> {
    return (await this.secrets(env, more).resolve(text, { baseDir: this.dir, ...options })).value;
  }
}

export async function failureOf(promise: Promise<unknown>): Promise<ToolcribError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof ToolcribError) return error;
    throw error;
  }
  throw new Error("nothing failed");
}
