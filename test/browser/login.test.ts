/** Coming in, staying in, and what happens when the hub goes away. */
import { once } from "node:events";
import { type AddressInfo } from "node:net";
import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { memory } from "../support/servers.ts";
import { BrowserBench, missingBrowser, type OpenPage } from "./page.ts";
import { Stage } from "./stage.ts";
import { Wire } from "./wire.ts";
import { isMissing } from "../support/skips.ts";

const missing = missingBrowser();
isMissing("the page in a browser", missing);

describe.skipIf(missing !== undefined)("the login in a browser", () => {
  const stage = new Stage();
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

  it("[oper-07b] takes the printed link once, and leaves no code in the address", async () => {
    expect(opened.page.url()).toBe(`${bench.hub.url}/`);
    const [cookie, ...more] = await opened.context.cookies();
    expect(more).toEqual([]);
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict" });
    expect(await opened.page.evaluate("document.cookie")).toBe("");

    const other = await bench.window();
    await other.page.goto(bench.hub.loginLink);
    await other.page.getByRole("heading", { name: "Log in to Toolcrib" }).waitFor();
    await expect.poll(() => other.page.getByRole("alert").innerText()).toMatch(/already used[^]*toolcrib login/);
    // With the token of the hub the page opens all the same.
    await other.page.getByRole("textbox", { name: "Token" }).fill(bench.hub.token);
    await other.page.getByRole("button", { name: "Log in" }).click();
    await other.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await other.context.close();
  });

  it("[oper-07b] does nothing that a page at another port asks for with the cookie", async () => {
    const address = `${bench.hub.url}/api/v1/mcp/servers`;
    const planted = `<input name='{"id":"planted","command":"true","x":"' value='"}'>`;
    const form = `<form method="post" enctype="text/plain" action="${address}">${planted}<button>Send</button></form>`;
    const foreign = createServer((_, response) => {
      response.setHeader("content-type", "text/html").end(form);
    }).listen(0, "127.0.0.1");
    await once(foreign, "listening");
    // It listens on a port.
    const { port } = foreign.address() as AddressInfo;
    const page = await opened.context.newPage();
    await page.goto(`http://127.0.0.1:${port}/`);
    const seen = await page.evaluate(async (url) => {
      const body = JSON.stringify({ id: "planted", command: "true" });
      const attempts = [
        fetch(url, { credentials: "include" }),
        fetch(url, { method: "POST", credentials: "include", body, mode: "no-cors" }),
        fetch(url, { method: "POST", credentials: "include", body, headers: { "x-toolcrib": "1" } }),
      ];
      const ends = await Promise.allSettled(attempts.map(async (attempt) => (await attempt).text()));
      return ends.map((end) => (end.status === "fulfilled" ? end.value : "refused"));
    }, address);
    expect(seen).toHaveLength(3);
    expect(seen.join(" ")).not.toContain("memory");
    await page.getByRole("button", { name: "Send" }).click();
    await page.waitForURL(address);
    await page.close();
    foreign.close();
    expect((await bench.api("GET", "/mcp/servers")).body["total"]).toBe(1);
    // These were the foreign page's.
    opened.misdeeds.foreign.length = 0;
    opened.misdeeds.wrong.length = 0;
  });

  it("[oper-10a] says that the connection is lost, recovers, and shows what happened meanwhile", async () => {
    const wire = await Wire.to(bench.hub.url);
    const link = String((await bench.api("POST", "/login-links")).body["url"]).replace(bench.hub.url, wire.url);
    const far = await bench.login({ link });
    const page = await far.go("Servers");
    await page.getByText("Live").waitFor();
    wire.cut();
    await page.getByText("Connection lost. Reconnecting…").waitFor();
    await bench.api("POST", "/mcp/servers", { id: "meanwhile", ...memory(`${stage.dir}/other.json`) });
    await page.getByRole("list", { name: "Servers" }).getByText("memory").waitFor();
    wire.mend();
    await page.getByText("Connected again.").waitFor();
    await page.getByRole("list", { name: "Servers" }).getByText("meanwhile").waitFor();
    await page.getByText("Live").waitFor();
    expect(far.misdeeds).toEqual({ foreign: [], wrong: [] });
    await far.context.close();
    wire.close();
  });

  it("[oper-10a] [joy-10b] is live again after the hub was started anew, and stays out after a logout", async () => {
    const page = await opened.go("Tools");
    await bench.hub.stop();
    await page.getByText("Connection lost. Reconnecting…").waitFor();
    bench.hub = await bench.hub.again();
    // It waits longer after each failed attempt.
    await page.getByText("Live").waitFor({ timeout: 60_000 });
    await page.getByRole("heading", { level: 1, name: "Tools" }).waitFor();
    await opened.go("Servers");
    await page.getByRole("list", { name: "Servers" }).getByText("meanwhile").waitFor();

    const cookies = await opened.context.cookies();
    const key = await page.evaluate<string | null>("localStorage.getItem('toolcrib-page-key')");
    expect([cookies.length, key]).toEqual([1, expect.any(String)]);
    await opened.open("/settings?tab=about");
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByRole("heading", { name: "Log in to Toolcrib" }).waitFor();
    await bench.hub.stop();
    bench.hub = await bench.hub.again();
    // Who kept both keys is not in again either.
    await opened.context.addCookies(cookies);
    await page.evaluate(`localStorage.setItem('toolcrib-page-key', ${JSON.stringify(key)})`);
    await page.goto(`${bench.hub.url}/tools`);
    await page.getByRole("heading", { name: "Log in to Toolcrib" }).waitFor();
    await page.getByText("Your login expired or was ended. Log in again.").waitFor();
    await page.goto(bench.hub.loginLink);
    // Where it was before.
    await page.getByRole("heading", { level: 1, name: "Tools" }).waitFor();
    expect(opened.misdeeds).toEqual({ foreign: [], wrong: [] });
  });
});
