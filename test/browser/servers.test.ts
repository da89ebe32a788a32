/** Servers on the page: adding one by the dialog, changing it, breaking it. */
import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { filesystem, memory } from "../support/servers.ts";
import { startRegistry } from "../support/npm-registry.ts";
import { BrowserBench, missingBrowser, type OpenPage } from "./page.ts";
import { Stage } from "./stage.ts";
import { isMissing } from "../support/skips.ts";

const missing = missingBrowser();
isMissing("the page in a browser", missing);

describe.skipIf(missing !== undefined)("servers in a browser", () => {
  const stage = new Stage();
  const notes = stage.notes();
  let bench: BrowserBench;
  let opened: OpenPage;

  beforeAll(async () => {
    bench = await BrowserBench.start({ mcpServers: { memory: memory(`${stage.dir}/memory.json`) } });
    opened = await bench.login();
  });
  afterAll(async () => {
    await bench?.close();
    stage.remove();
  });

  it("[oper-11a] [oper-09b] adds the filesystem server from a pasted command, after a test, and sees it turn green", async () => {
    const page = await opened.go("Servers");
    await page.getByRole("button", { name: "Add a server" }).click();
    const dialog = page.getByRole("dialog", { name: "Add a server" });
    const { command = "", args = [] } = filesystem(notes);
    await dialog.getByLabel("A command, an address or a snippet").fill([command, ...args].join(" "));
    await dialog.getByRole("button", { name: "Continue" }).click();
    expect(await dialog.getByLabel("Arguments").inputValue()).toContain(notes);
    await dialog.getByLabel("Id").fill("files");
    await dialog.getByRole("button", { name: "Test", exact: true }).click();
    await dialog.getByText(/It works: \d+ tools/).waitFor();
    // Nothing is there before it is saved.
    expect((await bench.api("GET", "/mcp/servers")).body["total"]).toBe(1);
    await dialog.getByRole("button", { name: "Save" }).click();
    const details = page.getByRole("region", { name: "Details of the server" });
    await details.getByText("Ready", { exact: true }).waitFor();
    await details.getByRole("link", { name: "read_text_file" }).waitFor();
    await page
      .getByRole("list", { name: "Servers" })
      .getByRole("listitem")
      .filter({ hasText: "files" })
      .getByText("Ready", { exact: true })
      .waitFor();
  });

  it("[joy-06e] shows the calls of each server in the list, asked for once for all", async () => {
    await bench.api("POST", "/mcp/tools/memory__read_graph/call", {});
    const asked: string[] = [];
    const note = (request: { url(): string }): void => {
      if (request.url().includes("/stats")) asked.push(request.url());
    };
    await expect
      .poll(async () => JSON.stringify((await bench.api("GET", "/stats")).body["servers"]))
      .toContain('"memory"');
    opened.page.on("request", note);
    const page = await opened.open("/servers");
    const list = page.getByRole("list", { name: "Servers" });
    const line = (name: string) => list.getByRole("listitem").filter({ hasText: name });
    await line("memory").getByText("1 call in the last 24 hours").waitFor();
    await line("files").getByText("0 calls in the last 24 hours").waitFor();
    expect(await line("memory").locator("svg[aria-hidden=true]").count()).toBeGreaterThan(0);
    // It may ask again, such as when its connection for events is there, but never for one server.
    expect(asked).not.toEqual([]);
    expect(asked.map((url) => [...new URL(url).searchParams.keys()]).flat()).not.toContain("server");
    opened.page.off("request", note);
  });

  it("[oper-09b] refuses a plain secret in words, and keeps the other variables when one is changed", async () => {
    const page = await opened.open("/servers?server=files");
    await page.getByRole("button", { name: "Edit" }).click();
    const dialog = page.getByRole("dialog", { name: "Edit files" });
    await dialog.getByRole("button", { name: "Add a variable" }).click();
    await dialog.getByLabel("Name of variable 1").fill("API_TOKEN");
    await dialog.getByLabel("Value of variable 1").fill("sk-live-4eC39HqLyjWDarjtT1zdp7dc");
    await dialog.getByRole("button", { name: "Save" }).click();
    const refusal = dialog.getByRole("alert");
    await refusal.waitFor();
    await expect.poll(() => refusal.innerText()).toMatch(/plain secret at .*API_TOKEN[^]*secret:\/\/env\/NAME/);
    expect(await refusal.innerText()).not.toContain("4eC39");
    await dialog.getByLabel("Value of variable 1").fill("secret://env/HOME");
    await dialog.getByRole("button", { name: "Add a variable" }).click();
    await dialog.getByLabel("Name of variable 2").fill("COLOUR");
    await dialog.getByLabel("Value of variable 2").fill("green");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "hidden" });

    await page.getByRole("button", { name: "Edit" }).click();
    await dialog.getByLabel("Value of variable 2").fill("blue");
    const sent = page.waitForRequest((request) => request.method() === "PATCH");
    await dialog.getByRole("button", { name: "Save" }).click();
    expect((await sent).postDataJSON()).toEqual({ env: { COLOUR: "blue" } });
    await dialog.waitFor({ state: "hidden" });
    const { body } = await bench.api("GET", "/mcp/servers/files");
    expect(body["server"]).toMatchObject({ config: { env: { API_TOKEN: "secret://env/HOME", COLOUR: "blue" } } });
  });

  it("[oper-11a] [oper-09b] shows why a server is red, live, with what to do", async () => {
    const page = await opened.open("/servers");
    const line = page.getByRole("list", { name: "Servers" }).getByRole("listitem").filter({ hasText: "files" });
    await line.getByText("Ready", { exact: true }).waitFor();
    await bench.api("PATCH", "/mcp/servers/files", { command: "no-such-program-here" });
    await line.getByText("Failed").waitFor();
    await expect.poll(() => line.innerText()).toMatch(/no-such-program-here[^]*(?:PATH|install)/i);
    await line.getByRole("link", { name: "files" }).click();
    await page.getByRole("tab", { name: "History" }).click();
    const history = page.getByRole("list", { name: /Changes of state/ });
    await history.getByText("Failed").first().waitFor();
    await expect.poll(() => history.innerText()).toMatch(/no-such-program-here/);
  });

  it("[counter-09f] shows that a package is being installed, in the list and in the detail", async () => {
    const program = resolve(import.meta.dirname, "../fixtures/environment-server.mjs");
    const registry = await startRegistry("toolcrib-small-server", "1.2.3", program, { delayMs: 60_000 });
    const env = { npm_config_registry: registry.url, npm_config_cache: `${stage.dir}/npm` };
    await bench.api("POST", "/mcp/servers", { id: "slow", command: "npx", args: ["-y", "toolcrib-small-server"], env });
    const page = await opened.open("/servers");
    const line = page.getByRole("list", { name: "Servers" }).getByRole("listitem").filter({ hasText: "slow" });
    await line.getByText("installing toolcrib-small-server …").waitFor();
    await line.getByRole("link", { name: "slow" }).click();
    const detail = page.getByRole("status").getByText("installing toolcrib-small-server …").last();
    await expect.poll(() => detail.isVisible()).toBe(true);
    await bench.api("DELETE", "/mcp/servers/slow");
    registry.stop();
  });

  it("[oper-09b] [oper-10a] disconnects, connects, disables and removes, and the list follows", async () => {
    const page = await opened.open("/servers?server=memory");
    await page.getByRole("button", { name: "Disconnect memory" }).last().click();
    const details = page.getByRole("region", { name: "Details of the server" });
    await details.getByRole("button", { name: "Connect memory" }).click();
    await details.getByText("Ready", { exact: true }).waitFor();
    await expect.poll(() => details.innerText()).toContain("toolcrib.json");
    await page.goto(`${bench.hub.url}/servers?server=files`);
    await details.getByRole("switch", { name: "Enabled" }).click();
    await details.getByText("Disabled").waitFor();
    await details.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Remove" }).click();
    await page.getByText("files was removed.").waitFor();
    expect((await bench.api("GET", "/mcp/servers")).body["total"]).toBe(1);
  });

  it("[counter-07a] shows a lazy server as asleep, with its tools, and wakes it", async () => {
    const entry = { ...memory(`${stage.dir}/lazy.json`), start: "lazy" };
    await bench.api("POST", "/mcp/servers", { id: "sleepy", ...entry });
    const page = await opened.open("/servers");
    const line = page.getByRole("list", { name: "Servers" }).getByRole("listitem").filter({ hasText: "sleepy" });
    await line.getByRole("button", { name: "Disconnect sleepy" }).click();
    await line.getByText("Asleep", { exact: true }).waitFor();
    await line.getByText("9 tools").waitFor();
    await line.getByRole("link", { name: "sleepy" }).click();
    const details = page.getByRole("region", { name: "Details of the server" });
    await details.getByText("Asleep", { exact: true }).waitFor();
    await details.getByRole("link", { name: "read_graph" }).waitFor();
    await details.getByRole("button", { name: "Wake sleepy" }).click();
    await details.getByText("Ready", { exact: true }).waitFor();
    const { body } = await bench.api("GET", "/mcp/servers/sleepy");
    expect(body["server"]).toMatchObject({ state: "ready", start: "lazy" });
    await bench.api("DELETE", "/mcp/servers/sleepy");
  });

  it("[oper-08c] is used by keyboard alone: navigation, dialog, Escape, and the focus comes back", async () => {
    const page = await opened.open("/");
    const focused = (): Promise<string> =>
      page.evaluate<string>("document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent");
    const tabTo = async (text: string): Promise<void> => {
      for (let press = 0; press < 40 && (await focused()).trim() !== text; press += 1) await page.keyboard.press("Tab");
      expect((await focused()).trim()).toBe(text);
    };
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("Skip to the content");
    await tabTo("Servers");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Servers" }).waitFor();
    await tabTo("Add a server");
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Add a server" });
    await dialog.waitFor();
    expect(await page.evaluate("document.activeElement.tagName")).toBe("TEXTAREA");
    // The focus stays within the dialog.
    for (let press = 0; press < 8; press += 1) await page.keyboard.press("Tab");
    await expect.poll(() => dialog.locator(":focus").count()).toBe(1);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await expect.poll(focused).toBe("Add a server");
  });

  it("[oper-07c] asked nobody but the hub, and nothing went wrong unseen", () => {
    expect(opened.misdeeds).toEqual({ foreign: [], wrong: [] });
  });
});
