/** Resources and prompts on the page, and what servers ask in calls that were made there. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { everything } from "../support/servers.ts";
import { axeViolations, picture } from "./looks.ts";
import { BrowserBench, missingBrowser, type OpenPage } from "./page.ts";
import { ELSEWHERE, HOSTILE_SCRIPT, type Script, Stage } from "./stage.ts";
import { isMissing } from "../support/skips.ts";

const missing = missingBrowser();
isMissing("the page in a browser", missing);

const base64 = (text: string): string => Buffer.from(text).toString("base64");
/** One pixel. */
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/** A tenth of a second of silence. */
const SOUND = Buffer.from(
  `524946464403000057415645666d74201000000001000100401f0000401f0000010008006461746120030000${"80".repeat(800)}`,
  "hex",
).toString("base64");
const SHELF: readonly (readonly [name: string, mimeType: string, content: object])[] = [
  ["data.json", "application/json", { text: JSON.stringify({ river: "Aare", length: 288 }) }],
  ["pixel.png", "image/png", { blob: PIXEL }],
  ["bell.wav", "audio/wav", { blob: SOUND }],
  ["report.pdf", "application/pdf", { blob: base64("%PDF-1.4\n%%EOF\n") }],
  ["page.html", "text/html", { blob: base64("<script>alert(1)</script>") }],
  ["app.bin", "application/octet-stream", { blob: base64("bytes") }],
];

const shelf: Script & { readonly reads: object } = {
  tools: [],
  resources: SHELF.map(([name, mimeType]) => ({ uri: `shelf:///${name}`, name, mimeType })),
  reads: Object.fromEntries(
    SHELF.map(([name, mimeType, content]) => {
      const uri = `shelf:///${name}`;
      return [uri, { contents: [{ uri, mimeType, ...content }] }];
    }),
  ),
};

describe.skipIf(missing !== undefined)("resources, prompts and questions in a browser", () => {
  const stage = new Stage();
  let bench: BrowserBench;
  let opened: OpenPage;

  beforeAll(async () => {
    const hostile = { ...HOSTILE_SCRIPT, gets: { hostile: hostilePrompt() } };
    bench = await BrowserBench.start({
      mcpServers: {
        everything: everything(),
        shelf: stage.scripted("shelf", shelf),
        hostile: stage.scripted("hostile", hostile),
      },
    });
    opened = await bench.login();
  });
  afterAll(async () => {
    await bench?.close();
    stage.remove();
  });

  const detail = async (path: string) => {
    const page = await opened.open(path);
    return { page, details: page.getByRole("region", { name: "Details", exact: true }) };
  };
  const resource = (uri: string) => detail(`/resources?uri=${encodeURIComponent(uri)}`);

  it("[joy-01d] finds a resource and shows it as Markdown, and as its source", async () => {
    const page = await opened.go("Resources");
    await page.getByRole("searchbox", { name: "Find a resource" }).fill("architecture");
    await page.getByRole("list", { name: "Resources" }).getByRole("link").first().click();
    const details = page.getByRole("region", { name: "Details", exact: true });
    await details.locator(".prose h1, .prose h2, .prose h3").first().waitFor();
    await details.getByRole("button", { name: "Source" }).click();
    await expect.poll(() => details.getByRole("group", { name: "Content" }).innerText()).toMatch(/^# /m);
  });

  it.each([
    ["/resources?uri=demo%3A%2F%2Fresource%2Fstatic%2Fdocument%2Ffeatures.md", "Resources"],
    ["/prompts?prompt=everything__simple-prompt", "Prompts"],
  ])("[joy-08b] closes the details of %s by Escape, back at its line", async (path, list) => {
    const { page, details } = await detail(path);
    await details.getByRole("heading").first().waitFor();
    const lines = page.getByRole("list", { name: list });
    await lines.locator("[aria-current]").waitFor();
    await page.keyboard.press("Escape");
    await details.waitFor({ state: "hidden" });
    await expect.poll(() => lines.locator("a:focus").count()).toBe(1);
  });

  it("[joy-01d] previews JSON, pictures, sounds, PDFs and other files, and runs none of them", async () => {
    const { details: json } = await resource("shelf:///data.json");
    await json.getByText("Aare").waitFor();
    const { details: picture } = await resource("shelf:///pixel.png");
    const image = picture.getByRole("img", { name: "Image of shelf:///pixel.png" });
    await image.waitFor();
    await expect
      .poll(() => opened.page.evaluate(`document.querySelector('img[alt^="Image of"]').naturalWidth`))
      .toBe(1);
    const { details: sound } = await resource("shelf:///bell.wav");
    await sound.locator("audio").waitFor();
    const { page, details: pdf } = await resource("shelf:///report.pdf");
    await pdf.getByRole("button", { name: "Open the PDF" }).waitFor();
    const saved = page.waitForEvent("download");
    await pdf.getByRole("button", { name: "Download" }).click();
    expect((await saved).suggestedFilename()).toBe("report.pdf");
    const { details: html } = await resource("shelf:///page.html");
    await html.getByText("<script>alert(1)</script>").waitFor();
    const { details: bytes } = await resource("shelf:///app.bin");
    await bytes.getByText("5 B of application/octet-stream").waitFor();
    expect(await bytes.getByRole("button", { name: "Open the PDF" }).count()).toBe(0);
  });

  it("[joy-01d] fills a template in, with suggestions of the server", async () => {
    const { details } = await resource("demo://resource/dynamic/text/{resourceId}");
    const input = details.getByRole("combobox", { name: "resourceId" });
    await details.getByRole("button", { name: "Read", exact: true }).click();
    await details.getByText("variables.resourceId: is missing").waitFor();
    await input.fill("42");
    await details.getByRole("button", { name: "Read", exact: true }).first().click();
    await details.getByText("demo://resource/dynamic/text/42").first().waitFor();
    await expect.poll(() => details.innerText()).toMatch(/Resource 42/i);
  });

  it("[joy-01d] runs a prompt, with completion that knows the other arguments", async () => {
    const { page, details } = await detail("/prompts?prompt=everything__completable-prompt");
    await details.getByRole("button", { name: "Run" }).click();
    await expect.poll(() => details.getByText("This is required.").count()).toBe(2);
    await details.getByRole("combobox", { name: "department" }).fill("Sal");
    await page.getByRole("option", { name: "Sales", exact: true }).click();
    const name = details.getByRole("combobox", { name: "name" });
    await name.focus();
    await page.getByRole("option", { name: "Eve", exact: true }).waitFor();
    await name.press("ArrowDown");
    await name.press("ArrowDown");
    await name.press("Enter");
    expect(await name.inputValue()).toBe("Eve");
    await details.getByRole("button", { name: "Run" }).click();
    await details.getByText("Please promote Eve to the head of the Sales team.").waitFor();
  });

  it("[joy-01d] follows a resource: an update is read and counted as it comes", async () => {
    const { page, details } = await resource("demo://resource/static/document/features.md");
    await details.locator(".prose").last().waitFor();
    await details.getByRole("switch", { name: "Follow changes" }).click();
    await details.getByText("Followed:").waitFor();
    const toggle = () => bench.api("POST", "/mcp/tools/everything__toggle-subscriber-updates/call", {});
    await toggle();
    await details.getByText(/^1 update, the last one/).waitFor();
    expect((await toggle()).status).toBe(200);
    await page.goto("about:blank");
  });

  it("[joy-01e] answers a form that a tool asks for", async () => {
    const { page, run, details } = await tryTool("everything__trigger-elicitation-request");
    await run.click();
    const dialog = page.getByRole("dialog", { name: "everything asks" });
    await looksGood("question-form");
    await dialog.getByRole("button", { name: "Answer" }).click();
    await dialog.getByText("1 value is missing or wrong.").waitFor();
    await dialog.getByLabel("name", { exact: true }).fill("Ada Lovelace");
    await dialog.getByRole("button", { name: "Answer" }).click();
    await dialog.waitFor({ state: "hidden" });
    await expect.poll(() => details.innerText()).toContain("Ada Lovelace");
  });

  it("[joy-01e] shows what a server wants to send to a model, and sends what a person answers", async () => {
    const { page, run, details } = await tryTool("everything__trigger-sampling-request");
    await details.getByLabel("prompt", { exact: true }).fill("Which river flows through Bern?");
    await run.click();
    const dialog = page.getByRole("dialog", { name: "everything asks a model" });
    await dialog.getByText("Which river flows through Bern?").waitFor();
    await looksGood("question-model");
    expect(await dialog.getByRole("button", { name: "Send this answer" }).isDisabled()).toBe(true);
    await dialog.getByLabel("Answer of the model").fill("The Aare.");
    await dialog.getByRole("button", { name: "Send this answer" }).click();
    await details.getByText("The Aare.").first().waitFor();
    await run.click();
    await dialog.getByRole("button", { name: "Decline" }).click();
    await details
      .getByText(/rejected/)
      .first()
      .waitFor();
  });

  it("[joy-01e] opens an address only if the person wants to, and says where it leads", async () => {
    const { page, run, details } = await tryTool("everything__trigger-url-elicitation");
    await details.getByLabel("url", { exact: true }).fill("https://bank.example@evil.example/login");
    await run.click();
    const dialog = page.getByRole("dialog", { name: "everything asks you to open an address" });
    await dialog.getByText("This address hides where it leads").waitFor();
    expect(await dialog.getByRole("link").count()).toBe(0);
    await dialog.getByRole("button", { name: "Decline" }).click();
    await details
      .getByText(/declined to open/)
      .first()
      .waitFor();
    await details.getByLabel("url", { exact: true }).fill(`${bench.hub.url}/healthz`);
    await run.click();
    const popup = opened.context.waitForEvent("page");
    await dialog.getByRole("link", { name: `Open ${new URL(bench.hub.url).host}` }).click();
    const other = await popup;
    expect(new URL(other.url()).pathname).toBe("/healthz");
    await other.close();
    await details
      .getByText(/User completed/)
      .first()
      .waitFor();
  });

  it("[joy-01e] closes a question whose call was cancelled, and answers none by closing it", async () => {
    const { page, run, details } = await tryTool("everything__trigger-elicitation-request");
    await run.click();
    const dialog = page.getByRole("dialog", { name: "everything asks" });
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await details
      .getByText(/cancel/i)
      .first()
      .waitFor();
    await run.click();
    await dialog.waitFor();
    await page.goto(`${bench.hub.url}/prompts`);
    await expect.poll(async () => (await bench.api("GET", "/questions")).body).toEqual({ questions: [] });
  });

  it("[joy-01d] shows hostile resources and prompts as text", async () => {
    const { details } = await detail("/prompts?prompt=hostile__hostile");
    await details.getByRole("button", { name: "Run" }).click();
    await details.getByText("alert('message')").first().waitFor();
    const { details: empty } = await resource("data:text/html,<script>alert(4)</script>");
    await empty.getByText("It is empty.").waitFor();
    expect(opened.misdeeds.wrong).toEqual([]);
  });

  it("[oper-07c] asked nobody but the hub, and nothing went wrong unseen", () => {
    expect(opened.misdeeds.foreign.filter((url) => !url.startsWith("about:"))).toEqual([]);
    expect(opened.misdeeds.wrong).toEqual([]);
  });

  const looksGood = async (name: string): Promise<void> => {
    const { page } = opened;
    await page.getByRole("dialog").waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await picture(page, name);
    await page.setViewportSize({ width: 390, height: 844 });
    await picture(page, `${name}-phone`);
    await page.setViewportSize({ width: 1280, height: 860 });
  };

  const tryTool = async (name: string) => {
    const page = await opened.open(`/tools?tool=${name}`);
    const details = page.getByRole("region", { name: "Details of the tool" });
    await details.getByRole("button", { name: "Try it" }).click();
    return { page, details, run: details.getByRole("button", { name: "Run" }) };
  };
});

function hostilePrompt(): object {
  const text = `<script>alert('message')</script> ![pixel](${ELSEWHERE}/pixel.png)`;
  return {
    messages: [
      { role: "user", content: { type: "text", text } },
      {
        role: "assistant",
        content: { type: "resource", resource: { uri: "x:///a.md", text, mimeType: "text/markdown" } },
      },
    ],
  };
}
