/** The frame of the page: first steps, palette, keys, live calls, the menu, and messages that can be undone. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { everything, filesystem } from "../support/servers.ts";
import { isMissing } from "../support/skips.ts";
import { axeViolations, picture } from "./looks.ts";
import { BrowserBench, missingBrowser, type OpenPage } from "./page.ts";
import { Stage } from "./stage.ts";

const missing = missingBrowser();
isMissing("the page in a browser", missing);

/** Pictures for people, what axe says, and whether it fits a phone. */
async function look(page: Page, name: string): Promise<void> {
  const size = page.viewportSize();
  await picture(page, `${name}-light`);
  expect(await axeViolations(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
  await picture(page, `${name}-dark`);
  expect(await axeViolations(page, ["color-contrast"])).toEqual([]);
  await page.setViewportSize({ width: 390, height: 844 });
  await picture(page, `${name}-phone-dark`);
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  await picture(page, `${name}-phone-light`);
  expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
  if (size !== null) await page.setViewportSize(size);
}

describe.skipIf(missing !== undefined)("the frame of the page", () => {
  const stage = new Stage();
  let bench: BrowserBench;
  let opened: OpenPage;

  beforeAll(async () => {
    bench = await BrowserBench.start({
      mcpServers: { everything: everything(), files: filesystem(stage.notes()) },
      limits: { callsPerMinute: 1000 },
    });
    mkdirSync(join(bench.hub.dir, ".cursor"));
    writeFileSync(join(bench.hub.dir, ".cursor/mcp.json"), '{ "mcpServers": {} }\n');
    opened = await bench.login();
  });
  afterAll(async () => {
    await bench?.close();
    stage.remove();
  });

  const call = (name: string, args: object = {}) => bench.api("POST", `/mcp/tools/${name}/call`, { arguments: args });
  const focused = (page: Page): Promise<string> => page.evaluate<string>("document.activeElement.textContent");

  it("[joy-11a] leads a new user to a tool that runs as it stands", async () => {
    const page = await opened.open("/");
    const steps = page.getByRole("region", { name: "Get started" });
    await steps.getByRole("button", { name: "Run" }).waitFor();
    expect(await steps.innerText()).toContain("everything__echo");
    await look(page, "first-steps");
    await steps.getByRole("button", { name: "Run" }).click();
    await steps.getByText("Echo: Hello from Toolcrib").waitFor();
  });

  it("[joy-11a] [joy-11b] a client of the machine is connected by one click, and disconnected by Undo", async () => {
    const { page } = opened;
    const steps = page.getByRole("region", { name: "Get started" });
    // The config of this hub is its user's own, so a server of one's own is there.
    expect(await steps.getByRole("button", { name: /Add your own server/ }).count()).toBe(0);
    await steps.getByRole("button", { name: /Connect a client/ }).click();
    const file = join(bench.hub.dir, ".cursor/mcp.json");
    await steps.getByRole("button", { name: "Connect Cursor" }).click();
    await page.getByText(/Cursor is connected\./).waitFor();
    expect(readFileSync(file, "utf8")).toContain('"toolcrib"');
    await look(page, "first-steps-client");
    await page.getByRole("region", { name: "Messages" }).getByRole("button", { name: "Undo" }).click();
    await page.getByText(/Cursor is no longer connected/).waitFor();
    expect(readFileSync(file, "utf8")).not.toContain("toolcrib");
  });

  it("[joy-11a] steps that are done are gone with the next visit, and all of them can be hidden", async () => {
    const page = await opened.open("/");
    const steps = page.getByRole("region", { name: "Get started" });
    await steps.getByRole("button", { name: /Connect a client/ }).waitFor();
    expect(await steps.getByRole("button", { name: /Try a tool/ }).count()).toBe(0);
    await steps.getByRole("button", { name: "Hide the first steps" }).click();
    await page.reload();
    await page.getByRole("heading", { name: "Calls over time" }).waitFor();
    expect(await steps.count()).toBe(0);
  });

  it("[joy-08a] finds tools, servers, settings, clients and help from anywhere, by keyboard alone", async () => {
    const page = await opened.open("/sessions");
    await page.keyboard.press("Control+k");
    const input = page.getByRole("combobox", { name: "Find anything" });
    await input.waitFor();
    await look(page, "palette");
    const option = (name: RegExp) => page.getByRole("option", { name });
    await page.keyboard.type("echo");
    await option(/everything__echo/).waitFor();
    await look(page, "palette-found");
    // The one that is announced is the one that Enter takes.
    const announced = await input.getAttribute("aria-activedescendant");
    expect(await page.locator(`[id="${announced}"]`).getAttribute("aria-selected")).toBe("true");
    await expect.poll(() => page.locator("[aria-selected=true]").innerText()).toContain("everything__echo");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "everything__echo" }).waitFor();
    expect(await input.count()).toBe(0);
  });

  it("[joy-08a] leads to servers, settings, clients and help as well", async () => {
    const { page } = opened;
    const input = page.getByRole("combobox", { name: "Find anything" });
    const option = (name: RegExp) => page.getByRole("option", { name });
    for (const [words, found, there] of [
      ["files", /^files/, "Details of the server"],
      ["callsPerMinute", /limits\.callsPerMinute/, "Settings"],
      ["zed", /^Zed/, "Connect a client"],
    ] as const) {
      await page.keyboard.press("Control+k");
      await input.fill(words);
      await option(found).first().waitFor();
      await option(found).first().click();
      await page
        .getByText(there)
        .or(page.getByRole("region", { name: there }))
        .first()
        .waitFor();
    }
    await page.keyboard.press("Control+k");
    await input.fill("tools.max search");
    await option(/tools\.max/)
      .first()
      .waitFor();
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Help" }).waitFor();
    const pages = page.getByRole("navigation", { name: "Pages" }).getByRole("link");
    expect(await pages.first().textContent()).toBe("Ten minutes with Toolcrib");
    await page.keyboard.press("Control+k");
    await input.fill("nothing is called like this");
    await page.getByText("Nothing found").last().waitFor();
    await page.keyboard.press("Escape");
    expect(await input.count()).toBe(0);
  });

  it("[oper-08c] a tab that a link opens is in view on a phone", async () => {
    const { page } = opened;
    const size = page.viewportSize();
    await page.setViewportSize({ width: 390, height: 844 });
    onTestFinished(() => (size === null ? undefined : page.setViewportSize(size)));
    await opened.open("/settings?tab=about");
    const tab = page.getByRole("tab", { name: "About" });
    await tab.waitFor();
    const end = async (): Promise<number> => {
      const { x = 0, width = 0 } = (await tab.boundingBox()) ?? {};
      return x + width;
    };
    await expect.poll(end).toBeLessThanOrEqual(390);
  });

  it("[joy-08b] lists and details need no Tab for each line, and keys are shown with ?", async () => {
    const page = await opened.open("/tools");
    const list = page.getByRole("list", { name: "Tools" });
    await list.getByRole("link").first().waitFor();
    // One line, and not the list as well.
    expect(await list.locator('[data-index]:has(:is(a, button, input):not([tabindex="-1"]))').count()).toBe(1);
    expect(await list.getAttribute("tabindex")).toBe("-1");
    await list.getByRole("link").first().focus();
    const first = await focused(page);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    const second = await focused(page);
    expect(second).not.toBe(first);
    await page.keyboard.press("End");
    await expect.poll(() => focused(page)).not.toBe(second);
    // The first line is that of the server.
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => focused(page)).toBe(first);
    await page.keyboard.press("Enter");
    const detail = page.getByRole("region", { name: "Details of the tool" });
    await detail.waitFor();
    const title = await detail.getByRole("heading", { level: 2 }).innerText();
    // Beside the details, the next line opens as it is reached.
    await page.keyboard.press("j");
    await expect.poll(() => detail.getByRole("heading", { level: 2 }).innerText()).not.toBe(title);
    await page.keyboard.press("Escape");
    await expect.poll(() => detail.count()).toBe(0);
    await expect.poll(() => page.evaluate<string>("document.activeElement.tagName")).toBe("A");
    await page.keyboard.press("/");
    expect(await page.evaluate<string>("document.activeElement.type")).toBe("search");
    // While one types, letters are letters.
    await page.keyboard.type("g?");
    expect(await page.getByRole("dialog").count()).toBe(0);
    await page.locator("#main").focus();
    await page.keyboard.press("?");
    const keys = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await keys.waitFor();
    await look(page, "shortcuts");
    await page.keyboard.press("Escape");
    await expect.poll(() => keys.count()).toBe(0);
    await page.keyboard.press("g");
    await page.keyboard.press("l");
    await page.getByRole("heading", { level: 1, name: "Traffic" }).waitFor();
  });

  it("[joy-07a] [joy-07b] shows calls as they happen, pauses, and records arguments from there", async () => {
    const page = await opened.open("/traffic");
    const list = page.getByRole("list", { name: "Calls" });
    await call("everything__get-sum", { a: 2, b: 3 });
    await list.getByRole("link", { name: /everything__get-sum.*ok/ }).waitFor();
    await list.getByRole("link", { name: /everything__get-sum/ }).click();
    const detail = page.getByRole("region", { name: "Details of the call" });
    await detail.getByText("recording was off when this call was made").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Pause" }).click();
    await call("files__list_allowed_directories");
    await page.getByText("Paused. 1 call since.").waitFor();
    expect(await list.getByRole("link", { name: /list_allowed/ }).count()).toBe(0);
    await page.getByRole("button", { name: "Resume" }).click();
    await list.getByRole("link", { name: /list_allowed/ }).waitFor();
    await page.getByRole("button", { name: "Recording is off" }).click();
    await page.getByRole("combobox", { name: "Calls of" }).selectOption("everything");
    await look(page, "recording");
    await page.getByRole("button", { name: "Start recording" }).click();
    await page.getByRole("button", { name: /Recording, 1[45]:\d\d left/ }).waitFor();
    await call("everything__echo", { message: "for the record", password: "hunter2" });
    await expect.poll(() => list.getByRole("link", { name: /everything__echo/ }).count()).toBe(2);
    await list
      .getByRole("link", { name: /everything__echo/ })
      .first()
      .click();
    await detail.getByText("Echo: for the record").waitFor();
    expect(await detail.innerText()).not.toContain("hunter2");
    await page.keyboard.press("Escape");
    await page.getByRole("combobox", { name: "Server" }).selectOption("files");
    await expect.poll(() => list.getByRole("link").count()).toBe(1);
    await page.getByRole("button", { name: /Recording, / }).click();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Recording stopped.").waitFor();
  });

  it("[joy-09e] the menu has theme, language and login, and a disconnected server comes back by Undo", async () => {
    const page = await opened.open("/servers?server=files");
    await page.getByRole("button", { name: /Operator/ }).click();
    const menu = page.getByRole("group", { name: "Account and display" });
    await look(page, "menu");
    await menu.getByText("Dark").click();
    expect(await page.evaluate<string>("document.documentElement.dataset.theme")).toBe("dark");
    await menu.getByText("System").click();
    await page.keyboard.press("Escape");
    expect(await menu.count()).toBe(0);
    // The details behind it stay open.
    await page.getByRole("region", { name: "Details of the server" }).waitFor();
    await page.getByRole("button", { name: /Operator/ }).click();
    await menu.getByRole("combobox", { name: "Language" }).selectOption("de");
    await page.getByRole("navigation", { name: "Ansichten" }).first().waitFor();
    await page.getByRole("button", { name: /Betreiber/ }).click();
    await page.getByRole("combobox", { name: "Sprache" }).selectOption("en");
    await page.getByRole("navigation", { name: "Views" }).first().waitFor();
    await page
      .getByRole("button", { name: "Disconnect Files" })
      .or(page.getByRole("button", { name: "Disconnect files" }))
      .first()
      .click();
    await page.getByText("files was disconnected.").waitFor();
    await page.getByRole("region", { name: "Messages" }).getByRole("button", { name: "Undo" }).click();
    await expect
      .poll(async () => (await bench.api("GET", "/mcp/servers/files")).body["server"])
      .toMatchObject({ state: "ready" });
  });

  it("[oper-07c] asked nobody but the hub, and nothing went wrong unseen", () => {
    expect(opened.misdeeds).toEqual({ foreign: [], wrong: [] });
  });
});
