/** Rules, roles, tokens and servers of the file, changed on the page: shown as a diff first, then written. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { everything, filesystem, memory } from "../support/servers.ts";
import { isMissing } from "../support/skips.ts";
import { axeViolations } from "./looks.ts";
import { BrowserBench, missingBrowser, type OpenPage } from "./page.ts";
import { Stage } from "./stage.ts";

const missing = missingBrowser();
isMissing("the page in a browser", missing);

describe.skipIf(missing !== undefined)("rules in a browser", () => {
  const stage = new Stage();
  let bench: BrowserBench;
  let opened: OpenPage;

  beforeAll(async () => {
    bench = await BrowserBench.start({
      mcpServers: {
        files: filesystem(stage.notes()),
        memory: memory(`${stage.dir}/memory.json`),
        slow: everything(),
      },
      tools: { ask: ["files__write_file"], deny: ["memory__delete_*"] },
      roles: { reader: { tools: { allow: ["readOnly"] } } },
    });
    opened = await bench.login();
  });
  afterAll(async () => {
    await bench?.close();
    stage.remove();
  });

  const config = (): Record<string, never> =>
    JSON.parse(readFileSync(join(bench.hub.dir, "toolcrib.json"), "utf8")) as Record<string, never>;

  it("[joy-09c] tools are lines of 36 px below their server, with what they do to things", async () => {
    const page = await opened.open("/tools");
    const list = page.getByRole("list", { name: "Tools" });
    const line = list.getByRole("listitem").filter({ hasText: "files__read_text_file" });
    await line.getByText("read", { exact: true }).waitFor();
    const [first, next] = await Promise.all([
      line.boundingBox(),
      list.getByRole("listitem").filter({ hasText: "files__read_media_file" }).boundingBox(),
    ]);
    expect((next?.y ?? 0) - (first?.y ?? 0)).toBe(36);
    await list.getByRole("checkbox", { name: "Select all tools of files" }).waitFor();
    await list.getByRole("listitem").filter({ hasText: "files__write_file" }).getByText("destructive").waitFor();
  });

  it("[joy-03h] denied tools are grey, with the rule and its line", async () => {
    const page = await opened.open("/tools");
    const line = page.getByRole("listitem").filter({ hasText: "memory__delete_entities" });
    await line.getByText("denied").waitFor();
    const name = line.getByText("memory__delete_entities", { exact: true });
    const other = page.getByText("memory__create_entities", { exact: true });
    const color = (element: typeof name): Promise<string> =>
      element.evaluate((found) => String(Reflect.get(globalThis, "getComputedStyle").call(globalThis, found).color));
    expect(await color(name)).not.toBe(await color(other));
    await line.getByText(/deny “memory__delete_\*” in .*\.json:\d+/).waitFor();
  });

  it("[joy-03b] denies selected tools after the diff and its effect were shown", async () => {
    const page = await opened.open("/tools");
    const list = page.getByRole("list", { name: "Tools" });
    await list.getByRole("checkbox", { name: "Select files__edit_file" }).check();
    await list.getByRole("checkbox", { name: "Select files__move_file" }).check();
    const bar = page.getByRole("toolbar", { name: "Selected tools" });
    await bar.getByText("2 tools selected").waitFor();
    await bar.getByRole("button", { name: "Deny" }).click();
    const dialog = page.getByRole("dialog", { name: "Deny: 2 tools" });
    await dialog.getByRole("row", { name: /Without a role 2/ }).waitFor();
    await expect.poll(() => dialog.innerText()).toMatch(/\+ .*"files__edit_file"/);
    expect(await axeViolations(page)).toEqual([]);
    expect(JSON.stringify(config())).not.toContain("files__edit_file");
    await dialog.getByRole("button", { name: "Write it" }).click();
    await dialog.waitFor({ state: "hidden" });
    await list.getByRole("listitem").filter({ hasText: "files__edit_file" }).getByText("denied").waitFor();
    expect(config()["tools"]).toMatchObject({ deny: ["memory__delete_*", "files__edit_file", "files__move_file"] });
  });

  it("[joy-03c] shows the new diff if the file changed meanwhile", async () => {
    const page = await opened.open("/tools?tool=files__edit_file");
    const details = page.getByRole("region", { name: "Details of the tool" });
    await details.getByRole("tab", { name: "Rules" }).click();
    await details.getByText(/deny “files__edit_file”/).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await details.getByRole("button", { name: "Allow" }).click();
    const dialog = page.getByRole("dialog", { name: "Allow: files__edit_file" });
    await dialog.getByRole("row", { name: /Without a role/ }).waitFor();
    writeFileSync(
      join(bench.hub.dir, "toolcrib.json"),
      JSON.stringify({ ...config(), limits: { callsPerMinute: 4711 } }, undefined, 2),
    );
    await dialog.getByRole("button", { name: "Write it" }).click();
    await dialog.getByText("The file was changed meanwhile.").waitFor();
    await dialog.getByRole("button", { name: "Write it" }).click();
    await dialog.waitFor({ state: "hidden" });
    expect(config()).toMatchObject({
      limits: { callsPerMinute: 4711 },
      tools: { deny: ["memory__delete_*", "files__move_file"] },
    });
  });

  it("[joy-03d] makes a role and removes it", async () => {
    const page = await opened.open("/settings?tab=roles");
    await page.getByRole("button", { name: "New role" }).click();
    const dialog = page.getByRole("dialog", { name: "New role" });
    await dialog.getByLabel("Name").fill("coder");
    await dialog.getByRole("checkbox", { name: "files" }).check();
    await dialog.getByLabel("Not these").fill("files__write_*");
    expect(await axeViolations(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Review…" }).click();
    const review = page.getByRole("dialog", { name: "Review the change" });
    await review.getByRole("button", { name: "Write it" }).click();
    await page.getByRole("listitem").filter({ hasText: "coder" }).waitFor();
    expect(config()["roles"]).toMatchObject({ coder: { servers: ["files"], tools: { deny: ["files__write_*"] } } });
    await page.getByRole("button", { name: "Remove coder" }).click();
    await review.getByRole("row", { name: /Role coder/ }).waitFor();
    await review.getByRole("button", { name: "Write it" }).click();
    await page.getByRole("listitem").filter({ hasText: "coder" }).waitFor({ state: "detached" });
  });

  it("[joy-03e] edits a server of the file, and disables two at once", async () => {
    const page = await opened.open("/servers?server=memory");
    const details = page.getByRole("region", { name: "Details of the server" });
    await details.getByRole("button", { name: "Edit" }).click();
    await page.getByRole("dialog", { name: "Edit memory" }).getByLabel("Name", { exact: true }).fill("Notes");
    await page.getByRole("button", { name: "Review…" }).click();
    const review = page.getByRole("dialog", { name: "Review the change" });
    await expect.poll(() => review.innerText()).toMatch(/\+ .*"name": ?"Notes"/);
    await review.getByRole("button", { name: "Write it" }).click();
    await details.getByRole("heading", { name: "Notes" }).waitFor();
    await opened.open("/servers");
    await page.getByRole("checkbox", { name: "Select Notes" }).check();
    await page.getByRole("checkbox", { name: "Select files" }).check();
    await page.getByRole("toolbar").getByRole("button", { name: "Disable" }).click();
    await expect.poll(() => review.innerText()).toContain("Loses");
    await review.getByRole("button", { name: "Write it" }).click();
    await expect.poll(() => page.getByText("Disabled", { exact: true }).count()).toBe(2);
    await page.getByRole("toolbar").getByRole("button", { name: "Enable" }).click();
    await review.getByRole("button", { name: "Write it" }).click();
    await expect.poll(() => page.getByText("Disabled", { exact: true }).count()).toBe(0);
  });

  it("[joy-09d] asks before it disconnects a server with calls in progress", async () => {
    const page = await opened.open("/servers");
    const calling = bench.api("POST", "/mcp/tools/slow__trigger-long-running-operation/call", {
      arguments: { duration: 60, steps: 60 },
    });
    const begun = "/audit?type=start&name=slow__trigger-long-running-operation";
    await expect.poll(async () => (await bench.api("GET", begun)).body["entries"]).toHaveLength(1);
    await page.getByRole("button", { name: "Disconnect slow" }).click();
    const dialog = page.getByRole("alertdialog", { name: "Calls are running" });
    await dialog.getByText("1 call of slow is in progress.").waitFor();
    await dialog.getByRole("button", { name: "Disconnect anyway" }).click();
    await dialog.waitFor({ state: "hidden" });
    expect((await calling).status).toBeGreaterThan(399);
  });

  it("[joy-03f] makes a token that is shown once, and revokes it", async () => {
    const page = await opened.open("/settings?tab=tokens");
    await page.getByRole("button", { name: "New token" }).click();
    const dialog = page.getByRole("dialog", { name: "New token" });
    await dialog.getByLabel("Name").fill("laptop");
    await dialog.getByLabel("User").fill("ada");
    await dialog.getByRole("button", { name: "Review…" }).click();
    const review = page.getByRole("dialog", { name: "Review the change" });
    await review.getByText(/http\.auth is new/).waitFor();
    await review.getByRole("button", { name: "Write it" }).click();
    const shown = page.getByRole("dialog", { name: "Copy the token now" });
    const token = (await shown.getByRole("group", { name: "Token" }).innerText()).trim();
    expect(token).toMatch(/^tc_[\w-]{43}$/);
    const status = async (): Promise<number> =>
      (await fetch(`${bench.hub.url}/api/v1/mcp/tools`, { headers: { authorization: `Bearer ${token}` } })).status;
    await expect.poll(status).toBe(200);
    await shown.getByRole("button", { name: "Close" }).last().click();
    const row = page.getByRole("row", { name: /laptop ada/ });
    await row.waitFor();
    expect(await page.locator("body").innerText()).not.toContain(token);
    await row.getByRole("button", { name: "Revoke laptop" }).click();
    await review.getByRole("button", { name: "Write it" }).click();
    await row.waitFor({ state: "detached" });
    await expect.poll(status).toBe(401);
    expect(opened.misdeeds).toEqual({ foreign: [], wrong: [] });
  });
});
