import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ToolIndex } from "../../src/catalog/search/tool-index.ts";
import { readWord, stem } from "../../src/catalog/search/search-words.ts";
import type { ToolCapability } from "../../src/model/capability.ts";
import type { ToolDefinition } from "../../src/model/protocol.ts";
import { syntheticTools } from "../../bench/synthetic-tools.ts";

function tool(name: string, more: Partial<ToolDefinition> = {}, source = "srv"): ToolCapability {
  const definition: ToolDefinition = { name, inputSchema: { type: "object" }, ...more };
  return { kind: "tool", name: `${source}__${name}`, origin: { source, name }, definition, fingerprint: name };
}

const says = (name: string, description: string, source?: string): ToolCapability =>
  tool(name, { description }, source);

const found = (index: ToolIndex, query: string, limit = 10): string[] =>
  index.search(query, limit).map((hit) => hit.name);

describe("[guard-05c] the ranking", () => {
  it("puts whoever knows a name first, in any spelling of it", () => {
    const index = new ToolIndex([
      says("file_reader", "read file read file read file read file"),
      says("read_file_lines", "Read file lines of a file."),
      says("read_file", "x"),
      says("readfile", "Another one.", "other"),
    ]);
    for (const query of ["srv__read_file", "SRV.readFile", "srv read file"])
      expect(found(index, query, 1)).toEqual(["srv__read_file"]);
    expect(found(index, "read_file", 2).toSorted()).toEqual(["other__readfile", "srv__read_file"]);
  });

  it("counts a word in the name for more than one in the description, and that for more than one in a parameter", () => {
    const schema = { type: "object", properties: { x: { type: "string", description: "An invoice." } } };
    const index = new ToolIndex([
      tool("alpha", { description: "Does one thing.", inputSchema: schema }),
      says("beta", "Does things with an invoice."),
      says("invoice_gamma", "Does a thing."),
    ]);
    expect(found(index, "invoice")).toEqual(["srv__invoice_gamma", "srv__beta", "srv__alpha"]);
  });

  it("finds by server, by tag, by title, by parameter name and by choice", () => {
    const schema = (property: object) => ({ type: "object", properties: { list: { type: "array", items: property } } });
    const index = new ToolIndex(
      [
        says("one", "x", "billing"),
        tool("two", { title: "Weather report" }),
        tool("three", { inputSchema: schema({ type: "object", properties: { zipCode: {} } }) }),
        tool("four", { inputSchema: schema({ enum: ["fahrenheit"] }) }),
      ],
      { tagsOf: (source) => (source === "billing" ? ["finance"] : []) },
    );
    expect(found(index, "billing")).toEqual(["billing__one"]);
    expect(found(index, "finance")).toEqual(["billing__one"]);
    expect(found(index, "weather")).toEqual(["srv__two"]);
    expect(found(index, "zip code")).toEqual(["srv__three"]);
    expect(found(index, "fahrenheit")).toEqual(["srv__four"]);
  });

  it("prefers a tool that has all of the query to one that has a rare word of it many times", () => {
    const others = Array.from({ length: 50 }, (_, i) => says(`tool_${i}`, `Create and delete thing ${i}.`));
    const index = new ToolIndex([
      ...others,
      says("stuffed", "branch branch branch branch branch branch branch branch"),
      says("delete_branch", "Delete a branch of the repository."),
    ]);
    expect(found(index, "delete a branch", 2)).toEqual(["srv__delete_branch", "srv__stuffed"]);
  });

  it("knows word forms, synonyms, compounds, camel case and slips of the finger", () => {
    const index = new ToolIndex([
      says("createPullRequest", "Opens one on GitHub."),
      says("remove_directory", "Takes it away.", "filesystem"),
      says("list_entries", "Lists entries."),
    ]);
    expect(found(index, "creating pull requests", 1)).toEqual(["srv__createPullRequest"]);
    expect(found(index, "github", 1)).toEqual(["srv__createPullRequest"]);
    expect(found(index, "delete folder", 1)).toEqual(["filesystem__remove_directory"]);
    expect(found(index, "file system", 1)).toEqual(["filesystem__remove_directory"]);
    expect(found(index, "entry", 1)).toEqual(["srv__list_entries"]);
    expect(found(index, "direc", 1)).toEqual(["filesystem__remove_directory"]);
    for (const slip of ["directorry", "directoy", "dierctory", "directury"]) {
      expect(found(index, slip, 1), slip).toEqual(["filesystem__remove_directory"]);
    }
  });

  it("reads other scripts and accents", () => {
    const index = new ToolIndex([
      says("a", "Créer un événement dans le calendrier"),
      says("b", "創建日曆事件並邀請參加者"),
      says("c", "Создать событие в календаре"),
    ]);
    expect(found(index, "evenement", 1)).toEqual(["srv__a"]);
    expect(found(index, "日曆", 1)).toEqual(["srv__b"]);
    expect(found(index, "событие", 1)).toEqual(["srv__c"]);
  });

  it("gives nothing for nothing", () => {
    const index = new ToolIndex([says("a", "Reads the file.")]);
    for (const query of ["", "   ", "the of to", "…", "zzzzqqq"]) expect(found(index, query), query).toEqual([]);
    expect(found(index, "file", 0)).toEqual([]);
    expect(found(new ToolIndex([]), "file")).toEqual([]);
  });

  it("searches among some of the tools only", () => {
    const tools = [says("read_file", "Reads."), says("write_file", "Writes."), says("move_file", "Moves.")];
    const index = new ToolIndex(tools);
    const subset = index.subset(tools.slice(1));
    expect(index.search("read_file", 10, subset).map((hit) => hit.name)).toEqual(["srv__write_file", "srv__move_file"]);
    expect(found(index, "read_file", 1)).toEqual(["srv__read_file"]);
  });

  it("takes whatever a server sends as a definition", () => {
    const endless: Record<string, unknown> = { type: "object" };
    endless["properties"] = { self: endless };
    const odd = [
      tool("endless", { inputSchema: endless }),
      tool("odd", { inputSchema: { properties: { a: 1, b: null, c: { enum: [1, null, "choice"], description: 5 } } } }),
      says("long", "word ".repeat(200_000)),
      says("quiet", "\u200b\u0000\ud800"),
    ];
    const index = new ToolIndex(odd);
    expect(found(index, "choice")).toEqual(["srv__odd"]);
    expect(found(index, "x ".repeat(100_000))).toEqual([]);
    expect(found(index, "long", 1)).toEqual(["srv__long"]);
  });
});

describe("[guard-05c] the ranking is deterministic", () => {
  const tools = syntheticTools(600);
  const index = new ToolIndex(tools);
  const words = [...new Set(tools.flatMap((one) => one.name.split("_")))].filter((word) => word !== "");
  const queries = fc
    .array(fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 8 })), { maxLength: 6 })
    .map((list) => list.join(" "));

  it("gives equals in the order of the catalog", () => {
    const same = ["b", "a", "c"].map((source) => says("ping", "Sends a ping.", source));
    expect(found(new ToolIndex(same), "sends ping")).toEqual(["b__ping", "a__ping", "c__ping"]);
  });

  it("gives the same for the same query, whatever was asked in between, best first and none twice", () => {
    fc.assert(
      fc.property(queries, queries, fc.integer({ min: 1, max: 50 }), (query, between, limit) => {
        const first = index.search(query, limit);
        index.search(between, limit);
        expect(index.search(query, limit)).toEqual(first);
        expect(first.length).toBeLessThanOrEqual(limit);
        expect(new Set(first.map((hit) => hit.name)).size).toBe(first.length);
        expect(first.map((hit) => hit.score)).toEqual(first.map((hit) => hit.score).toSorted((a, b) => b - a));
        expect(first.every((hit) => hit.score > 0)).toBe(true);
      }),
    );
  });

  it("gives the same from an index built anew, and a shorter list is the beginning of a longer one", () => {
    const again = new ToolIndex(syntheticTools(600));
    fc.assert(
      fc.property(queries, (query) => {
        const long = index.search(query, 40);
        expect(again.search(query, 40)).toEqual(long);
        expect(index.search(query, 5)).toEqual(long.slice(0, 5));
      }),
    );
  });
});

describe("[guard-05c] words", () => {
  it.each([
    ["files", "file"],
    ["creating", "create"],
    ["created", "creates"],
    ["repositories", "repository"],
    ["searches", "searching"],
    ["planned", "plan"],
    ["calls", "calling"],
    ["boxes", "box"],
  ])("meet: %s and %s", (a, b) => {
    expect(stem(a)).toBe(stem(b));
  });

  it.each([
    ["file", "fill"],
    ["status", "state"],
    ["address", "add"],
    ["ring", "r"],
    ["news", "ne"],
    ["string", "str"],
  ])("stay apart: %s and %s", (a, b) => {
    expect(stem(a)).not.toBe(stem(b));
  });

  it("are taken apart where their case says so, and kept whole too", () => {
    expect(readWord("GitHub")).toEqual({ parts: ["git", "hub"], whole: "github" });
    expect(readWord("HTTPServer").parts).toEqual(["http", "server"]);
    expect(readWord("JSON")).toEqual({ parts: ["json"], whole: undefined });
    expect(readWord("the").parts).toEqual([]);
  });
});
