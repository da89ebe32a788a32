/** The built page in a real Chromium, on a hub that `serve` runs in a process of its own. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { afterEach } from "vitest";
import { ServedHub } from "../load/served-hub.ts";

const PROGRAMS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const BUILT = join(import.meta.dirname, "../../dist/web/index.html");

const openPages = new Set<Page>();

// What a page showed says more than the element that was awaited in vain. Files of this folder have a process each.
afterEach(async ({ task }) => {
  if (task.result?.state !== "fail") return;
  for (const page of openPages) {
    const text = await page.locator("body").innerText({ timeout: 5000 }).catch(String);
    process.stderr.write(`${page.url()} when "${task.name}" failed:\n${text}\n`);
  }
});

/** Why there can be no browser here, or undefined. */
export function missingBrowser(): string | undefined {
  return PROGRAMS.some((path) => existsSync(path)) ? undefined : `none of ${PROGRAMS.join(", ")}`;
}

export function launchBrowser(): Promise<Browser> {
  const executablePath = PROGRAMS.find((path) => existsSync(path)) ?? "";
  // Containers forbid the namespaces of its sandbox.
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** What must never happen on the page, as it happened. */
export interface Misdeeds {
  /** Addresses outside the hub that something was asked of. */
  readonly foreign: string[];
  /** Dialogs, uncaught errors, refusals of the Content-Security-Policy and what else the console calls an error. */
  readonly wrong: string[];
}

export class OpenPage {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly misdeeds: Misdeeds = { foreign: [], wrong: [] };
  readonly #origin: string;

  constructor(context: BrowserContext, page: Page, origin: string) {
    this.context = context;
    this.page = page;
    this.#origin = origin;
    openPages.add(page);
    page.on("close", () => openPages.delete(page));
    const { foreign, wrong } = this.misdeeds;
    context.on("request", (request) => {
      if (!isOf(this.#origin, request.url())) foreign.push(request.url());
    });
    page.on("websocket", (socket) => {
      if (!isOf(this.#origin.replace("http", "ws"), socket.url())) foreign.push(socket.url());
    });
    page.on("dialog", (dialog) => {
      wrong.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("pageerror", (error) => wrong.push(`uncaught: ${error.message}`));
    page.on("console", (message) => {
      // A refused answer of the hub is told by the browser as well; the page shows it.
      if (message.type() === "error" && !/^Failed to load resource|WebSocket connection/.test(message.text()))
        wrong.push(`console: ${message.text()}`);
    });
  }

  /** A view by its path, once it has its heading. */
  async open(path: string): Promise<Page> {
    await this.page.goto(`${this.#origin}${path}`);
    // By its tag: an open dialog hides it from roles.
    await this.page.locator("h1").waitFor();
    return this.page;
  }

  /** A view by its path, without loading the page again: axe is sent to it once, and scripts are compiled once. */
  async show(path: string): Promise<Page> {
    const heading = this.page.locator("h1");
    const go = (to: string): Promise<unknown> => this.page.evaluate(`history.pushState({}, "", ${JSON.stringify(to)})`);
    // Through a place without a view, so that nothing of the one before is taken for a part of this one.
    await go("/nowhere");
    await heading.waitFor({ state: "detached" });
    await go(path);
    await heading.waitFor();
    return this.page;
  }

  /** A view by its entry of the navigation, without loading the page anew. */
  async go(view: string): Promise<Page> {
    await this.page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: view }).first().click();
    await this.page.getByRole("heading", { level: 1, name: view }).waitFor();
    return this.page;
  }
}

/** One hub and one browser for the tests of a file. */
export class BrowserBench {
  readonly #browser: Browser;
  hub: ServedHub;

  private constructor(hub: ServedHub, browser: Browser) {
    this.hub = hub;
    this.#browser = browser;
  }

  /** @param env Further variables of the hub's environment. */
  static async start(config: object, env: NodeJS.ProcessEnv = {}): Promise<BrowserBench> {
    if (!existsSync(BUILT)) throw new Error("The page is not built: run `node scripts/dev.mjs build` first.");
    const [hub, browser] = await Promise.all([ServedHub.start(config, env), launchBrowser()]);
    return new BrowserBench(hub, browser);
  }

  /** A window of its own, logged in with the link. */
  async login(options: { readonly link?: string; readonly width?: number } = {}): Promise<OpenPage> {
    const { link = this.hub.loginLink, width = 1280 } = options;
    const opened = await this.window(new URL(link).origin, width);
    await opened.page.goto(link);
    await opened.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    return opened;
  }

  async window(origin = this.hub.url, width = 1280): Promise<OpenPage> {
    const context = await this.#browser.newContext({
      viewport: { width, height: width < 500 ? 800 : 860 },
      reducedMotion: "reduce",
      colorScheme: "light",
      locale: "en-GB",
    });
    context.setDefaultTimeout(60_000);
    return new OpenPage(context, await context.newPage(), origin);
  }

  /** An operation of the API with the hub's own token, as a program would use it. */
  async api(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await fetch(`${this.hub.url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${this.hub.token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as Answer["body"] };
  }

  async close(): Promise<void> {
    await this.#browser.close();
    await this.hub.remove();
  }
}

export interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

function isOf(origin: string, url: string): boolean {
  return url.startsWith(`${origin}/`) || /^(?:data|blob):/.test(url);
}
