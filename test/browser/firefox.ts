/** Debian's Firefox over WebDriver BiDi, which it speaks by itself: Playwright needs a newer one, or one of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebSocket } from "ws";

const PROGRAMS = [process.env["FIREFOX"] ?? "", "/usr/bin/firefox-esr", "/usr/bin/firefox"];

/** Why there can be no Firefox here, or undefined. */
export function missingFirefox(): string | undefined {
  return PROGRAMS.some((path) => existsSync(path)) ? undefined : "neither /usr/bin/firefox-esr nor /usr/bin/firefox";
}

/** It asks nobody else for anything. */
const PREFERENCES = {
  "app.normandy.enabled": false,
  "browser.shell.checkDefaultBrowser": false,
  "browser.safebrowsing.malware.enabled": false,
  "browser.safebrowsing.phishing.enabled": false,
  "datareporting.policy.dataSubmissionEnabled": false,
  "intl.accept_languages": "en-GB",
  "network.captive-portal-service.enabled": false,
  "network.connectivity-service.enabled": false,
  "remote.active-protocols": 1,
  "services.settings.server": "data:,#remote-settings-dummy/v1",
  "toolkit.telemetry.server": "",
};

const START_MS = 60_000;
const WAIT_MS = 30_000;
const LOOK_AGAIN_MS = 20;

interface Reply {
  readonly id?: number;
  readonly type: "success" | "error" | "event";
  readonly result?: unknown;
  readonly message?: string;
  readonly method?: string;
  readonly params?: { readonly level?: string; readonly text?: string };
}

export class Firefox {
  readonly #child: ChildProcess;
  readonly #socket: WebSocket;
  readonly #dir: string;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #last = 0;
  #tab = "";
  /** What its console called an error. */
  readonly errors: string[] = [];

  private constructor(child: ChildProcess, socket: WebSocket, dir: string) {
    this.#child = child;
    this.#socket = socket;
    this.#dir = dir;
    socket.on("message", (data: Buffer) => this.#heard(JSON.parse(data.toString("utf8")) as Reply));
  }

  static async start(): Promise<Firefox> {
    const dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-firefox-")));
    const lines = Object.entries(PREFERENCES).map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});`);
    writeFileSync(join(dir, "user.js"), lines.join("\n"));
    const program = PROGRAMS.find((path) => existsSync(path)) ?? "";
    const child = spawn(program, ["--headless", "--no-remote", "--remote-debugging-port=0", "--profile", dir], {
      // Containers forbid the namespaces of its sandbox.
      env: { PATH: process.env["PATH"], HOME: dir, MOZ_DISABLE_CONTENT_SANDBOX: "1", MOZ_CRASHREPORTER_DISABLE: "1" },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const address = await listening(child);
    const socket = new WebSocket(`${address}/session`);
    await once(socket, "open");
    const firefox = new Firefox(child, socket, dir);
    await firefox.#send("session.new", { capabilities: {} });
    await firefox.#send("session.subscribe", { events: ["log.entryAdded"] });
    const { context } = (await firefox.#send("browsingContext.create", { type: "tab" })) as { context: string };
    firefox.#tab = context;
    return firefox;
  }

  async open(url: string): Promise<void> {
    await this.#send("browsingContext.navigate", { context: this.#tab, url, wait: "complete" });
  }

  /** The value of an expression in the page, as JSON has it. */
  async evaluate<Value>(expression: string): Promise<Value> {
    const asked = (await this.#send("script.evaluate", {
      expression: `JSON.stringify(${expression})`,
      target: { context: this.#tab },
      awaitPromise: true,
    })) as { type: string; result?: { value?: string }; exceptionDetails?: { text: string } };
    if (asked.type !== "success") throw new Error(asked.exceptionDetails?.text ?? "The page failed.");
    return JSON.parse(asked.result?.value ?? "null") as Value;
  }

  /** Waits until an expression is true in the page. */
  async until(expression: string): Promise<void> {
    const end = performance.now() + WAIT_MS;
    for (;;) {
      // While a page gives way to the next there is nothing to ask.
      if (await this.evaluate<boolean>(`Boolean(${expression})`).catch(() => false)) return;
      if (performance.now() > end) {
        const shown = await this.evaluate<string>("location.href + '\\n' + document.body.innerText");
        throw new Error(`Waited ${WAIT_MS} ms in vain for ${expression} in\n${shown}`);
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
  }

  /** Clicks the first link or button of this name, once it is there. */
  async click(name: string): Promise<void> {
    const found = `[...document.querySelectorAll("a, button")].find((each) => each.innerText.trim() === ${JSON.stringify(name)})`;
    await this.until(`${found} && !${found}.disabled`);
    await this.evaluate(`void ${found}.click()`);
  }

  async close(): Promise<void> {
    const exited = once(this.#child, "exit");
    // It closes the connection before it answers, or instead.
    this.#socket.send(JSON.stringify({ id: ++this.#last, method: "browser.close", params: {} }));
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), 10_000);
    await exited;
    clearTimeout(timer);
    this.#socket.close();
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 5 });
  }

  #heard(reply: Reply): void {
    if (reply.type === "event") {
      const { level, text = "" } = reply.params ?? {};
      if (level === "error") this.errors.push(text);
      return;
    }
    this.#waiting.get(reply.id ?? 0)?.(reply);
    this.#waiting.delete(reply.id ?? 0);
  }

  #send(method: string, params: object): Promise<unknown> {
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, (reply) =>
        reply.type === "success" ? resolve(reply.result) : reject(new Error(`${method}: ${reply.message}`)),
      );
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }
}

function listening(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    const timer = setTimeout(() => reject(new Error(`Firefox did not start: ${said}`)), START_MS);
    child.stderr?.on("data", (chunk: Buffer) => {
      said += chunk.toString("utf8");
      const [, address] = /listening on (ws:\/\/\S+)/.exec(said) ?? [];
      if (address === undefined) return;
      clearTimeout(timer);
      resolve(address);
    });
    child.once("exit", (code) => reject(new Error(`Firefox ended with ${code}: ${said}`)));
    child.once("error", reject);
  });
}
