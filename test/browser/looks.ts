/** How a page looks: what axe says of it, and a picture for people to look at. */
import { AxeBuilder } from "@axe-core/playwright";
import { join, resolve } from "node:path";
import type { Page } from "playwright-core";

const ARTIFACTS = resolve(import.meta.dirname, "../artifacts");

/** `npm run screenshots` wants pictures; otherwise they would be a third of the time. */
export const ARE_PICTURED = process.env["DOCS_IMAGES"] === "write";

export async function picture(page: Page, name: string, options: { readonly fullPage?: boolean } = {}): Promise<void> {
  if (!ARE_PICTURED) return;
  await page.screenshot({ path: join(ARTIFACTS, `${name}.png`), animations: "disabled", ...options });
}

export interface Violation {
  readonly impact: string | undefined;
  /** The rule and the elements. */
  readonly text: string;
}

/** @param rules All rules without it. */
export async function axeViolations(page: Page, rules?: readonly string[]): Promise<Violation[]> {
  // Its source is half a megabyte, which each analysis would send and compile again.
  const isThere = await page.evaluate<boolean>("window.axe !== undefined");
  const axe = new AxeBuilder({ page, ...(isThere ? { axeSource: "undefined" } : {}) });
  // Otherwise it describes each element that each rule passed.
  axe.options({ resultTypes: ["violations"] });
  if (rules !== undefined) axe.withRules([...rules]);
  // The page has no frames, so axe needs no window of its own to join their results.
  const { violations } = await axe.setLegacyMode().analyze();
  return violations.map(({ id, impact, nodes }) => ({
    impact: impact ?? undefined,
    text: `${id}: ${nodes.map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary ?? ""}`).join(" ")}`,
  }));
}
