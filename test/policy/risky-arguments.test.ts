/** What is marked in the arguments of a call that waits. */
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { type RiskContext, riskyParts } from "../../src/policy/risky-arguments.ts";

const CONTEXT: RiskContext = { roots: ["/home/ada/work", "/srv/data"], host: "api.example.com", looked: [] };

/** `risk text` of each part, in their order. */
function marked(args: JsonObject, context: Partial<RiskContext> = {}): string[] {
  return riskyParts(args, { ...CONTEXT, ...context }).map(({ risk, at, from, to }) => {
    const value = at.reduce<unknown>((inner, step) => (inner as Record<string | number, unknown>)[step], args);
    return `${risk} ${from === undefined ? "(whole)" : String(value).slice(from, to)}`;
  });
}

describe("[joy-04b] paths", () => {
  it.each([
    ["/etc/passwd", ["outside /etc/passwd"]],
    ["/home/ada/work/notes.md", []],
    ["/home/ada/work", []],
    ["/home/ada/work of others/notes.md", ["outside /home/ada/work of others/notes.md"]],
    ["/home/ada/workshop", ["outside /home/ada/workshop"]],
    ["/home/ada/work/../.ssh/id_rsa", ["outside /home/ada/work/../.ssh/id_rsa"]],
    ["notes/../a.txt", []],
    ["../secrets.txt", ["outside ../secrets.txt"]],
    ["sub/../../x", ["outside sub/../../x"]],
    ["..\\..\\x", ["outside ..\\..\\x"]],
    ["~/.ssh/config", ["outside ~/.ssh/config"]],
    ["/srv/data/a b.csv", []],
    ["C:\\Windows\\x", ["outside C:\\Windows\\x"]],
    ["file:///etc/shadow", ["outside file:///etc/shadow"]],
    ["file:///srv/data/%2e%2e/x", ["outside file:///srv/data/%2e%2e/x"]],
    ["", []],
  ])("%j", (path, expected) => {
    expect(marked({ path })).toEqual(expected);
  });

  it("are found among the words of a command, in lists and inside objects", () => {
    expect(marked({ command: "cat /etc/passwd notes.md" })).toEqual(["outside /etc/passwd"]);
    expect(marked({ args: ["-r", "/etc"] })).toEqual(["outside /etc"]);
    expect(marked({ options: { files: [{ name: "../../a" }] } })).toEqual(["outside ../../a"]);
  });

  it("are not seen in prose, nor where nothing says what is inside", () => {
    expect(marked({ message: "Type /help and/or read 1/2 of it." })).toEqual([]);
    expect(marked({ path: "/etc/passwd" }, { roots: [] })).toEqual([]);
  });
});

describe("[joy-04b] addresses", () => {
  it.each([
    ["https://api.example.com/v1", []],
    ["HTTPS://API.EXAMPLE.COM/v1", []],
    ["https://api.example.com:8443/", ["host https://api.example.com:8443/"]],
    ["https://api.example.com@evil.example/x", ["host https://api.example.com@evil.example/x"]],
    ["See http://evil.example/?q=1, please.", ["host http://evil.example/?q=1"]],
    ["a https://a.example b https://b.example", ["host https://a.example", "host https://b.example"]],
    ["ssh://git@host.example/x.git", ["host ssh://git@host.example/x.git"]],
    ["nothing://", []],
  ])("%j", (url, expected) => {
    expect(marked({ url })).toEqual(expected);
  });

  it("are all elsewhere for a server that is not at an address", () => {
    expect(marked({ url: "http://localhost:8080/" }, { host: undefined })).toEqual(["host http://localhost:8080/"]);
  });
});

describe("[joy-04b] what a shell acts on", () => {
  it("is marked wherever a command is written", () => {
    expect(marked({ command: "ls; rm -rf x | tee $(pwd)" })).toEqual(["shell ;", "shell |", "shell $("]);
    expect(marked({ build_command: "a > b" })).toEqual(["shell >"]);
    expect(marked({ command: "one\ntwo" })).toEqual(["shell \n"]);
  });

  it("is marked elsewhere only where it hardly means anything else", () => {
    expect(marked({ name: "x; rm -rf y" })).toEqual(["shell ;"]);
    expect(marked({ name: "$(curl x)" })).toEqual(["shell $("]);
    expect(marked({ title: "Bread & butter; salt < sugar | tea, mostly" })).toEqual([]);
    expect(marked({ text: "A list:\n\n- `code`\n- a && b" })).toEqual([]);
    expect(marked({ url: "https://api.example.com/?a=1&&b=2;c" })).toEqual([]);
  });
});

describe("[joy-04b] what the rule looked at", () => {
  it("is marked whole, by the first part of its name and in any case", () => {
    expect(marked({ Branch: "main", other: 1 }, { looked: ["branch"] })).toEqual(["rule (whole)"]);
    expect(marked({ edits: [{ file: "a" }] }, { looked: ["edits[].file"] })).toEqual(["rule (whole)"]);
  });
});

it("[joy-04b] stays quick and small for texts that are made to be slow", () => {
  const texts = [
    "../".repeat(40_000),
    "http://x ".repeat(12_000),
    `https://a/${")".repeat(90_000)}x`,
    "; ".repeat(50_000),
    ";" + " ".repeat(90_000),
    "a:/".repeat(40_000),
    ">".repeat(100_000),
  ];
  for (const text of texts) {
    expect(riskyParts({ text, command: text }, CONTEXT).length).toBeLessThanOrEqual(200);
  }
  let deep: JsonObject = { path: "/etc/passwd" };
  for (let level = 0; level < 5000; level++) deep = { deep };
  expect(riskyParts(deep, CONTEXT)).toEqual([]);
});
