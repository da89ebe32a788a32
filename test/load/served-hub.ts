/** `toolcrib serve` in a process of its own, as an operator runs it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LOGIN_LINKS_PATH } from "../../src/doors/http/login-routes.ts";
import { readHubRecords } from "../../src/hub/activity/hub-records.ts";
import { runProgram } from "../support/run-program.ts";
import { MAIN, PATIENT } from "../support/main-program.ts";

interface Found {
  readonly url: string;
  readonly token: string;
  readonly login: string;
}

export class ServedHub {
  readonly dir: string;
  readonly home: string;
  readonly url: string;
  /** Has the scope `admin`. */
  readonly token: string;
  /** What `toolcrib login` prints: it logs a browser in once. */
  readonly loginLink: string;
  readonly #child: ChildProcess;
  readonly #env: NodeJS.ProcessEnv;

  /** What it wrote to stderr. */
  stderr = "";

  private constructor(dir: string, child: ChildProcess, found: Found, env: NodeJS.ProcessEnv) {
    this.dir = dir;
    this.#env = env;
    this.home = join(dir, "home");
    this.#child = child;
    this.url = found.url;
    this.token = found.token;
    this.loginLink = found.login;
  }

  /** @param env Further variables of its environment. */
  static start(config: object, env: NodeJS.ProcessEnv = {}): Promise<ServedHub> {
    const dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-served-")));
    writeFileSync(join(dir, "toolcrib.json"), JSON.stringify(config));
    return ServedHub.#serve(dir, "0", env);
  }

  /** Another run at the same address, with the same home, after this one was stopped. */
  again(): Promise<ServedHub> {
    return ServedHub.#serve(this.dir, new URL(this.url).port, this.#env);
  }

  static async #serve(dir: string, port: string, more: NodeJS.ProcessEnv): Promise<ServedHub> {
    const [file, home] = [join(dir, "toolcrib.json"), join(dir, "home")];
    const child = spawn(process.execPath, [MAIN, "serve", "--config", file, "--port", port, "--json"], {
      env: { PATH: process.env["PATH"], HOME: dir, ...PATIENT, TOOLCRIB_HOME: home, ...more },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    let printed = "";
    child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString("utf8")));
    await new Promise<void>((ready, failed) => {
      child.once("exit", () => failed(new Error(`serve ended: ${said}`)));
      // It prints one JSON document when it listens.
      child.stdout.on("data", (chunk: Buffer) => {
        printed += chunk.toString("utf8");
        if (/^\}/m.test(printed)) ready();
      });
    });
    const [found] = readHubRecords(home);
    if (found === undefined) throw new Error(`The hub left no file: ${printed}`);
    const headers = { authorization: `Bearer ${found.token}` };
    const link = await fetch(`${found.url}${LOGIN_LINKS_PATH}`, { method: "POST", headers });
    const { url: login } = (await link.json()) as { readonly url: string };
    const hub = new ServedHub(dir, child, { ...found, login }, more);
    hub.stderr = said;
    child.stderr.on("data", (chunk: Buffer) => (hub.stderr += chunk.toString("utf8")));
    return hub;
  }

  /** Memory that the process holds, in bytes. */
  async memory(): Promise<number> {
    const { stdout } = await runProgram("ps", ["-o", "rss=", "-p", String(this.#child.pid)]);
    return Number(stdout.trim()) * 1024;
  }

  /** Ends it as a service manager does, and gives its exit code. */
  async stop(): Promise<number | null> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) return exitCode;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await exited;
    return this.#child.exitCode;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }
}
