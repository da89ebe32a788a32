/**
 * docs/tutorial.md, done as it says: its commands in a shell, its steps on the page in a browser. What is done on the page is in comments of the
 * document and names what the text around it names. `npm run screenshots` sets DOCS_IMAGES: then the pictures of the document are made.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchBrowser, missingBrowser } from "../browser/page.ts";
import { PATIENT } from "../support/main-program.ts";
import { runProgram } from "../support/run-program.ts";
import { isMissing } from "../support/skips.ts";
import { examplesIn } from "./markdown-examples.ts";
import { isAsShown } from "./shown-output.ts";

const root = join(import.meta.dirname, "..", "..");
const IMAGES = join(root, "docs", "images");
const tutorial = readFileSync(join(root, "docs", "tutorial.md"), "utf8");
const missing = missingBrowser();
isMissing("the tutorial in a browser", missing);

/** Where the clone of the reader is, in the document. */
const SHOWN_CLONE = "/path/to/toolcrib";
/** For a section. */
const LONGEST_MS = 120_000;
const MAX_IMAGE_BYTES = 120_000;

/** A clone in which everything is built, and a home in which there is a client. */
class Reader {
  readonly #dir = realpathSync(mkdtempSync(join(tmpdir(), "toolcrib-tutorial-")));
  readonly clone = join(this.#dir, "toolcrib");
  readonly #env = { HOME: this.#dir, NO_COLOR: "1", ...PATIENT };
  #hub: ChildProcess | undefined;
  #browser: Browser | undefined;
  readonly #tabs: Page[] = [];

  constructor() {
    mkdirSync(join(this.#dir, ".cursor"));
    writeFileSync(join(this.#dir, ".cursor", "mcp.json"), '{ "mcpServers": {} }\n');
    // A copy, because the tutorial changes its config.
    cpSync(join(root, "demo"), join(this.clone, "demo"), { recursive: true });
    for (const name of ["bin", "dist", "node_modules", "package.json", "schema.json"])
      symlinkSync(join(root, name), join(this.clone, name));
  }

  /** What `npm start` runs when everything is built, at a free port. Returns the line that it ends with. */
  async start(): Promise<string> {
    const env = { PATH: process.env["PATH"], ...this.#env };
    const hub = spawn(process.execPath, [join("demo", "start.ts"), "--port", "0"], { cwd: this.clone, env });
    this.#hub = hub;
    let said = "";
    hub.stderr.on("data", (chunk: Buffer) => (said += chunk.toString("utf8")));
    for await (const line of createInterface(hub.stdout)) if (line.startsWith("Open this:")) return line;
    throw new Error(`The hub did not say what to open: ${said}`);
  }

  /** Opens the page. The line of the start has a login for terminals alone, so the link is asked for. */
  async open(): Promise<void> {
    const { url } = JSON.parse(await this.shell("TOOLCRIB_HOME=.dev/demo/home node bin/toolcrib.js login --json")) as {
      readonly url: string;
    };
    this.#browser = await launchBrowser();
    const context = await this.#browser.newContext({
      viewport: { width: 1080, height: 720 },
      reducedMotion: "reduce",
      colorScheme: "light",
      locale: "en-GB",
    });
    context.setDefaultTimeout(60_000);
    const page = await context.newPage();
    this.#tabs.push(page);
    await page.goto(url);
    await page.locator("h1").waitFor();
  }

  async shell(command: string): Promise<string> {
    const run = await runProgram("bash", ["-e", "-c", command], { cwd: this.clone, env: this.#env });
    expect(run.code, run.stderr).toBe(0);
    return run.stdout;
  }

  /** One line of a comment, such as `click button "Run"`. */
  async act(line: string): Promise<void> {
    const page = this.#tabs.at(-1);
    if (page === undefined) throw new Error("The page is not open yet.");
    const [, verb = "", role = "", first = "", second = ""] =
      /^(see|check|fill|follow|close|picture|click (button|link)) "?(.*?)"?(?: with "(.*)")?$/.exec(line) ?? [];
    const named = { name: first, exact: true };
    // The newest is on top: an open dialog, or what is beside the list.
    if (verb === "click button")
      return page
        .getByRole("button", { name: new RegExp(`^${first}( |$)`) })
        .last()
        .click();
    if (role === "link")
      return page
        .getByRole("link", { name: new RegExp(`^${first}( |$)`) })
        .first()
        .click();
    if (verb === "check") return page.getByRole("checkbox", named).check();
    if (verb === "fill") return page.getByLabel(first, { exact: true }).fill(this.here(second));
    if (verb === "see") return page.getByText(first).filter({ visible: true }).first().waitFor();
    if (verb === "follow") {
      const opened = page.waitForEvent("popup");
      await page.getByRole("link", named).click();
      this.#tabs.push(await opened);
      return;
    }
    if (line === "close tab") return this.#tabs.pop()?.close();
    if (line === "close messages") {
      const dismiss = page.getByRole("region", { name: "Messages" }).getByRole("button", { name: "Dismiss" });
      for (const button of await dismiss.all()) await button.click({ force: true });
      return;
    }
    if (verb !== "picture") throw new Error(`No one knows how to do this: ${line}`);
    if (process.env["DOCS_IMAGES"] !== undefined)
      await page.screenshot({ path: join(IMAGES, `${first}.png`), animations: "disabled" });
  }

  here(text: string): string {
    return text.replaceAll(SHOWN_CLONE, this.clone);
  }

  async close(): Promise<void> {
    await this.#browser?.close();
    if (this.#hub !== undefined && this.#hub.exitCode === null) {
      const ended = once(this.#hub, "exit");
      this.#hub.kill("SIGTERM");
      await ended;
    }
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

interface Section {
  readonly heading: string;
  readonly text: string;
}

const SECTIONS: readonly Section[] = tutorial
  .split(/^(?=## )/m)
  .slice(1)
  .map((text) => ({ heading: /^## (.+)$/m.exec(text)?.[1] ?? "", text }))
  .filter(({ heading }) => /^\d/.test(heading));

const actionsIn = (text: string): string[] =>
  [...text.matchAll(/^<!-- page\n([^]*?)\n-->$/gm)].flatMap(([, lines = ""]) => lines.split("\n"));

/** Blocks and comments of a section, in the order of the document. */
const PARTS = /^<!-- page\n[^]*?\n-->$|^(?:<!-- .+ -->\n)?```\w*\n[^]*?^```$/gm;

async function follow(reader: Reader, { text }: Section): Promise<void> {
  let printed = "";
  for (const [part] of text.matchAll(PARTS)) {
    for (const action of actionsIn(part)) await reader.act(action);
    for (const { mark, text: content } of examplesIn(part)) {
      if (mark.kind === "hub") {
        printed = (await reader.start()).replace(/127\.0\.0\.1:\d+/, "127.0.0.1:4700");
        await reader.open();
      }
      if (mark.kind === "file") writeFileSync(join(reader.clone, mark.name), `${content}\n`);
      if (mark.kind === "run") printed = await reader.shell(content);
      if (mark.kind === "prints") expect(isAsShown(content, printed), printed).toBe(true);
    }
  }
}

describe.skipIf(missing !== undefined)("docs/tutorial.md", () => {
  let reader: Reader;
  beforeAll(() => {
    reader = new Reader();
  });
  afterAll(() => reader.close());

  it.each(SECTIONS)(
    "[joy-17c] $heading",
    async (section) => expect(follow(reader, section)).resolves.toBeUndefined(),
    LONGEST_MS,
  );
});

it("[joy-17c] every action on the page is in the text of its section", () => {
  for (const { heading, text } of SECTIONS) {
    const shown = text.replaceAll(/<!--[^]*?-->/g, "");
    for (const action of actionsIn(text)) {
      if (/^(?:close|picture) /.test(action)) continue;
      const [, name = ""] = /"(.*?)"/.exec(action) ?? [];
      expect(shown, `${heading}: ${action}`).toContain(name);
    }
  }
});

it("[joy-17c] the pictures of the tutorial are there and small", () => {
  const images = [...tutorial.matchAll(/!\[[^\]]+\]\(images\/([\w-]+)\.png\)/g)].map(([, name = ""]) => name);
  const taken = SECTIONS.flatMap(({ text }) => actionsIn(text)).filter((action) => action.startsWith("picture "));
  expect(taken).toEqual(images.map((name) => `picture ${name}`));
  expect(images.length).toBeLessThanOrEqual(6);
  for (const name of images) expect(statSync(join(IMAGES, `${name}.png`)).size, name).toBeLessThan(MAX_IMAGE_BYTES);
});
