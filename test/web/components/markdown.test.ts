import { createElement, type FunctionComponent } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { safeLink } from "../../../web/src/components/safe-link.ts";

// By its address: the compiler of the tests knows nothing of the page's JSX.
const path = new URL("../../../web/src/components/markdown.tsx", import.meta.url).href;
const { Markdown } = (await import(path)) as { Markdown: FunctionComponent<{ text: string }> };

function shown(text: string): string {
  return renderToStaticMarkup(createElement(Markdown, { text }));
}

describe("markdown of others", () => {
  it("[oper-07d] shows headings, lists, code and tables as elements, headings below those of the page", () => {
    const html = shown("# One\n\n- a\n- **b** `c`\n\n| x |\n|---|\n| y |\n");
    expect(html).toContain("<h3>One</h3>");
    expect(html).toContain("<li><strong>b</strong> <code>c</code></li>");
    expect(html).toContain("<td>y</td>");
  });

  it("[oper-07d] shows HTML as text", () => {
    const html = shown("<script>alert(1)</script>\n\nso <img src=x onerror=alert(1)> and <b>bold</b>");
    expect(html).not.toMatch(/<(script|img|b)\b/);
    expect(html).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(html).toContain("&lt;img src=x onerror=alert(1)&gt;");
  });

  it.each([
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,<script>",
    "vbscript:x",
    "file:///etc/passwd",
    "//evil.example",
  ])("[oper-07d] makes no link of %s", (address) => {
    const html = shown(`[click](${address})`);
    expect(html).not.toContain("<a");
    expect(html).toContain("click");
  });

  it("[oper-07d] says where a link leads, and opens it apart from the page", () => {
    const html = shown("[your bank](https://evil.example/login)");
    expect(html).toContain('href="https://evil.example/login"');
    expect(html).toContain('rel="noopener noreferrer"');
    expect(html).toContain('target="_blank"');
    expect(html).toContain("(evil.example)");
  });

  it("[oper-07d] loads no image", () => {
    const html = shown("![chart](https://evil.example/pixel.png?who=me)");
    expect(html).not.toContain("<img");
    expect(html).toContain("[image: chart]");
  });

  it("shows a text that is too long for markdown as it is", () => {
    const html = shown(`**x** ${"a".repeat(200_000)}`);
    expect(html).toContain("<pre");
    expect(html).toContain("**x**");
  });

  it("shows entities as the characters that they mean", () => {
    expect(shown("a &amp;&lt; b")).toContain("a &amp;&lt; b");
    expect(shown("`&amp;`")).toContain("&amp;amp;");
  });
});

describe("addresses", () => {
  it("[oper-07d] refuses an address with a name before the host", () => {
    expect(safeLink("https://bank.example@evil.example/")).toBeUndefined();
    expect(safeLink("https://example.com:8443/a")).toEqual({
      href: "https://example.com:8443/a",
      host: "example.com:8443",
    });
  });
});
