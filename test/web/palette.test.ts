import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ToolInfo } from "../../src/contract/catalog-schemas.ts";
import { lineAfter } from "../../web/src/components/line-after.ts";
import { bestMatches } from "../../web/src/shell/palette-entries.ts";
import { docsTarget, headingId } from "../../web/src/views/help/headings.ts";
import { argumentsOf, isDemoFile, sampleCall } from "../../web/src/views/overview/sample-call.ts";

const DOCS = join(import.meta.dirname, "../../docs");

describe("what the palette finds", () => {
  const entries = [
    { text: "Settings" },
    { text: "Audit log" },
    { text: "limits.auditDays", more: "settings" },
    { text: "Sun" },
  ];
  const found = (typed: string): string[] => bestMatches(entries, typed, 3).map(({ text }) => text);

  it("[joy-08a] has every word, and beginnings of names first", () => {
    expect(found("aud")).toEqual(["Audit log", "limits.auditDays"]);
    expect(found("LOG audit")).toEqual(["Audit log"]);
    expect(found("sett")).toEqual(["Settings", "limits.auditDays"]);
    expect(found("log settings")).toEqual([]);
    expect(found("  ")).toHaveLength(3);
  });
});

describe("links of the documentation", () => {
  it("[joy-08a] lead to headings that are there", () => {
    const pages = new Map(
      readdirSync(DOCS)
        .filter((name) => name.endsWith(".md"))
        .map((name) => {
          const text = readFileSync(join(DOCS, name), "utf8");
          const plain = text.replaceAll(/^```[^]*?^```/gm, "");
          return [
            name.slice(0, -3),
            { plain, ids: new Set([...plain.matchAll(/^#+ (.+)$/gm)].map(([, one = ""]) => headingId(one))) },
          ];
        }),
    );
    let checked = 0;
    for (const [page, { plain }] of pages)
      for (const [, href = ""] of plain.matchAll(/\]\(([^)]+)\)/g)) {
        const target = docsTarget(href);
        if (target?.at === undefined) continue;
        checked += 1;
        expect(pages.get(target.page ?? page)?.ids.has(target.at), `${page}.md: ${href}`).toBe(true);
      }
    expect(checked).toBeGreaterThan(20);
  });

  it("[joy-08a] are those of the documentation alone", () => {
    expect(docsTarget("audit.md#verify-the-log")).toEqual({ page: "audit", at: "verify-the-log" });
    expect(docsTarget("#here")).toEqual({ at: "here" });
    for (const other of ["", "../README.md", "design/a.md", "javascript:alert(1)", "https://a.example/b.md"])
      expect(docsTarget(other)).toBeUndefined();
  });
});

describe("keys in a list", () => {
  it("[joy-08b] stay within it", () => {
    expect(lineAfter("ArrowDown", 0, 3)).toBe(1);
    expect(lineAfter("j", 2, 3)).toBe(2);
    expect(lineAfter("k", 0, 3)).toBe(0);
    expect(lineAfter("End", 0, 3)).toBe(2);
    expect(lineAfter("Home", 2, 3)).toBe(0);
    expect(lineAfter("x", 0, 3)).toBeUndefined();
    expect(lineAfter("j", 0, 0)).toBeUndefined();
  });
});

describe("a first call", () => {
  const tool = (mcpName: string, more: Partial<ToolInfo> = {}): ToolInfo => ({
    ...{ name: `s__${mcpName}`, serverId: "s", mcpName, server: "s", tool: mcpName, fingerprint: "f", pin: "off" },
    annotations: { readOnlyHint: true },
    inputSchema: { type: "object" },
    ...more,
  });
  const needs = (properties: object, required = Object.keys(properties)): Partial<ToolInfo> => ({
    inputSchema: { type: "object", properties, required },
  });

  it("[joy-11a] is of a tool that only reads, with arguments that it takes", () => {
    const echo = tool("echo", needs({ message: { type: "string" } }));
    expect(sampleCall([tool("list_things"), echo])).toEqual({
      name: "s__echo",
      arguments: { message: "Hello from Toolcrib" },
    });
    expect(
      sampleCall([tool("delete_all", { annotations: {} }), tool("mail", { annotations: { destructiveHint: true } })]),
    ).toBeUndefined();
    expect(sampleCall([tool("fetch", { annotations: { readOnlyHint: true, openWorldHint: true } })])).toBeUndefined();
    // A path cannot be guessed.
    expect(sampleCall([tool("read_file", needs({ path: { type: "string" } }))])).toBeUndefined();
    expect(sampleCall([tool("read", { quarantined: "changed" })])).toBeUndefined();
    expect(
      sampleCall([
        tool(
          "get",
          needs({ unit: { enum: ["C", "F"] }, count: { type: "integer", minimum: 1 }, deep: { type: "boolean" } }),
        ),
      ]),
    ).toEqual({ name: "s__get", arguments: { unit: "C", count: 1, deep: false } });
  });

  it("[joy-11a] takes the arguments as edited, if they are an object", () => {
    expect(argumentsOf('{"a":1}')).toEqual({ a: 1 });
    for (const wrong of ["", "{", "[]", "1", "null"]) expect(argumentsOf(wrong)).toBeUndefined();
  });

  it("[joy-11a] servers of the demo are not one's own", () => {
    expect(isDemoFile("/home/ada/toolcrib/demo/toolcrib.json")).toBe(true);
    expect(isDemoFile("C:\\toolcrib\\demo\\toolcrib.json")).toBe(true);
    expect(isDemoFile("/home/ada/.toolcrib/toolcrib.json")).toBe(false);
  });
});
