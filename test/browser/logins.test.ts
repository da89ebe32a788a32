/** Logins at remote servers from the page, in a real browser that goes to the authorization server and comes back. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { AuthorizationServer } from "../doubles/authorization-server.ts";
import { ProtectedServer } from "../doubles/protected-server.ts";
import { isMissing } from "../support/skips.ts";
import { axeViolations, picture } from "./looks.ts";
import { BrowserBench, missingBrowser, type OpenPage } from "./page.ts";

const missing = missingBrowser();
isMissing("the page in a browser", missing);

const ALICE = "alice-0123456789abcdef";
const MALLORY = "mallory-0123456789abcdef";

describe.skipIf(missing !== undefined)("logins in a browser", () => {
  let authorization: AuthorizationServer;
  let server: ProtectedServer;
  let bench: BrowserBench;
  let opened: OpenPage;

  beforeAll(async () => {
    authorization = await AuthorizationServer.start(systemClock);
    server = await ProtectedServer.start(authorization);
    bench = await BrowserBench.start({
      mcpServers: {
        shared: { url: server.url },
        personal: { url: server.url, isolation: "user", auth: { type: "oauth" } },
      },
      http: { auth: { tokens: [ALICE, MALLORY].map((token) => ({ token, user: token.split("-")[0] })) } },
    });
    opened = await bench.login();
  });
  afterAll(async () => {
    await bench?.close();
    await Promise.all([authorization?.close(), server?.close()]);
  });

  it("[oper-08b] [joy-02a] the logins fit a phone, without a violation that axe finds", async () => {
    const page = await opened.open("/logins");
    await page.getByRole("button", { name: "Log in at shared" }).waitFor();
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      expect(await axeViolations(page)).toEqual([]);
      await picture(page, `logins-${colorScheme}`);
    }
    await page.setViewportSize({ width: 360, height: 800 });
    await picture(page, "logins-phone");
    expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(360);
    await page.setViewportSize({ width: 1280, height: 860 });
  });

  const asAlice = async (path: string): Promise<OpenPage> => {
    const window = await bench.window();
    await window.page.goto(`${bench.hub.url}${path}`);
    await window.page.getByRole("textbox", { name: "Token" }).fill(ALICE);
    await window.page.getByRole("button", { name: "Log in" }).click();
    await window.page.getByRole("heading", { level: 1, name: "Logins" }).waitFor();
    return window;
  };

  it("[joy-02a] a server that needs a login has a button for it, and is connected after it", async () => {
    const page = await opened.open("/servers?server=shared");
    await page.getByRole("button", { name: "Log in at shared" }).first().click();
    await page.getByText("Logged in to shared.").waitFor();
    expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe("/logins");
    const line = page.getByRole("listitem").filter({ hasText: "shared" });
    await line.getByText("logged in", { exact: true }).waitFor();
    await page.getByRole("link", { name: "shared" }).click();
    await page.getByRole("link", { name: "whoami" }).waitFor();
    // The code is in no entry of the history.
    await page.goBack();
    await page.goBack();
    expect(page.url()).not.toContain("code=");
  });

  it("[joy-02a] says that a login was refused, and logs out", async () => {
    const page = await opened.open("/logins?server=shared");
    const line = page.getByRole("listitem").filter({ hasText: "shared" });
    await line.getByRole("button", { name: "Log out" }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Log out" }).click();
    await line.getByText("login needed").waitFor();
    authorization.denies = true;
    await line.getByRole("button", { name: "Log in at shared" }).click();
    await page.getByText("The login was refused: access_denied.").waitFor();
    authorization.denies = false;
    expect(new URL(page.url()).search).toBe("");
  });

  it("[joy-02d] a user has a page with their own logins, and a tool that needs one leads there", async () => {
    const { page, context } = await asAlice("/logins?server=personal");
    expect(await page.getByRole("navigation").count()).toBe(0);
    await page.getByText("Only an operator can log in there.").waitFor();
    expect(await page.getByRole("button", { name: "Log in at shared" }).count()).toBe(0);
    authorization.user = "alice-at-remote";
    await page.getByRole("button", { name: "Log in at personal" }).click();
    await page.getByText("Logged in to personal.").waitFor();
    await page.getByRole("listitem").filter({ hasText: "personal" }).getByText("logged in", { exact: true }).waitFor();
    const called = await fetch(`${bench.hub.url}/api/v1/mcp/tools/personal__whoami/call`, {
      method: "POST",
      headers: { authorization: `Bearer ${ALICE}`, "content-type": "application/json" },
      body: "{}",
    });
    expect(await called.text()).toContain("alice-at-remote");
    await page.getByRole("button", { name: "Leave the page" }).click();
    await page.getByRole("heading", { name: "Log in to Toolcrib" }).waitFor();
    await context.close();
  });

  it("[joy-02b] a link to a login that someone else began is refused, and nothing is kept", async () => {
    const begun = await fetch(`${bench.hub.url}/api/v1/mcp/logins/personal`, {
      method: "POST",
      headers: { authorization: `Bearer ${MALLORY}` },
    });
    const { url } = (await begun.json()) as { readonly url: string };
    const { page, context } = await asAlice("/logins");
    const before = authorization.tokenRequests.length;
    await page.goto(url);
    await page.getByText("This login was begun by someone else").waitFor();
    // Also for whoever is not logged in yet, and logs in then.
    const again = await fetch(`${bench.hub.url}/api/v1/mcp/logins/personal`, {
      method: "POST",
      headers: { authorization: `Bearer ${MALLORY}` },
    });
    await page.getByRole("button", { name: "Leave the page" }).click();
    await page.getByRole("heading", { name: "Log in to Toolcrib" }).waitFor();
    await page.goto(((await again.json()) as { readonly url: string }).url);
    await page.getByRole("textbox", { name: "Token" }).fill(ALICE);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByText("This login was begun by someone else").waitFor();
    expect(authorization.tokenRequests).toHaveLength(before);
    await context.close();
  });

  it("[oper-07c] asked nobody but the hub and the authorization server, and nothing went wrong unseen", () => {
    expect(opened.misdeeds.foreign.filter((url) => !url.startsWith(`${authorization.url}/authorize?`))).toEqual([]);
    expect(opened.misdeeds.wrong).toEqual([]);
  });
});
