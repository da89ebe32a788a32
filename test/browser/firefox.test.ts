/** The main views in Firefox: that they load, are live, and do what they are for. Chromium has the whole suite. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ServedHub } from "../load/served-hub.ts";
import { everything } from "../support/servers.ts";
import { isMissing } from "../support/skips.ts";
import { Firefox, missingFirefox } from "./firefox.ts";

const missing = missingFirefox();
isMissing("the page in Firefox", missing);

const VIEWS = ["Servers", "Tools", "Approvals", "Skills", "Sessions", "Audit", "Settings", "Overview"];
const heading = (name: string): string => `document.querySelector("h1")?.innerText === ${JSON.stringify(name)}`;
const shows = (text: string): string => `document.body.innerText.includes(${JSON.stringify(text)})`;

describe.skipIf(missing !== undefined)("the page in Firefox", () => {
  let hub: ServedHub;
  let firefox: Firefox;

  beforeAll(async () => {
    [hub, firefox] = await Promise.all([
      ServedHub.start({ mcpServers: { everything: everything() }, tools: { ask: ["everything__get-sum"] } }),
      Firefox.start(),
    ]);
    await firefox.open(hub.loginLink);
    await firefox.until(heading("Overview"));
  });
  afterAll(async () => {
    await firefox?.close();
    await hub?.remove();
  });

  const ask = async (a: number): Promise<{ status: number; text: string }> => {
    const answer = await fetch(`${hub.url}/api/v1/mcp/tools/everything__get-sum/call`, {
      method: "POST",
      headers: { authorization: `Bearer ${hub.token}`, "content-type": "application/json" },
      body: JSON.stringify({ arguments: { a, b: 2 } }),
    });
    return { status: answer.status, text: await answer.text() };
  };

  it("[joy-10d] has every view, with a live connection and without an error", async () => {
    await firefox.until(shows("Live"));
    for (const view of VIEWS) {
      await firefox.click(view);
      await firefox.until(heading(view));
      await firefox.until(`document.querySelector("[role=status] .animate-pulse") === null`);
    }
    await firefox.open(`${hub.url}/tools?tool=everything__echo`);
    await firefox.until(shows("everything__echo"));
    expect(await firefox.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    expect(firefox.errors).toEqual([]);
  });

  it("[joy-10d] shows a call that waits without a reload, and answers it", async () => {
    await firefox.open(`${hub.url}/approvals`);
    await firefox.until(shows("Nothing is waiting"));
    expect((await ask(40)).status).toBe(403);
    await firefox.until(`document.title.startsWith("(1)") && document.querySelector("article h3") !== null`);
    await firefox.click("Allow once");
    await firefox.until(shows("Nothing is waiting"));
    expect((await ask(40)).text).toContain("42");
    expect(firefox.errors).toEqual([]);
  });
});
