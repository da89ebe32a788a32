/** The message catalog of the page: nothing is missing in a language, nothing is unused, and no view has text of its own. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { afterEach, describe, expect, it } from "vitest";
import {
  type Catalog,
  currentLanguage,
  LANGUAGES,
  languageFor,
  type Message,
  partsOf,
  setLanguage,
  t,
} from "../../web/src/messages/messages.ts";

const SOURCE = join(import.meta.dirname, "..", "..", "web", "src");
const MESSAGES = join(SOURCE, "messages");

/** Folders and files whose text is in the catalog; a view is added here when it is moved over. */
const MOVED = [
  "components/",
  "failure.ts",
  "routes.tsx",
  "shell/",
  "state/",
  "views/approvals/",
  "views/audit/",
  "views/help/",
  "views/logins/",
  "views/overview/",
  "views/prompts/",
  "views/questions/",
  "views/resources/",
  "views/settings/",
  "views/skills/",
  "views/tools/",
  "views/traffic/",
];
/** Moved with the views of servers and sessions. */
const NOT_YET = new Set(["components/state-dot.tsx"]);

/** Text that is the same in every language. */
const NAMES = new Set([
  "Toolcrib",
  "JSON",
  "Claude Code",
  "Agent Skills",
  "OpenClaw, workspace",
  // An argument that a person may change before it is sent.
  "Hello from Toolcrib",
]);

const catalogs: readonly (readonly [file: string, catalog: Catalog])[] = await Promise.all(
  readdirSync(MESSAGES)
    .filter((name) => name !== "messages.ts")
    .map(async (name): Promise<readonly [string, Catalog]> => {
      const [catalog] = Object.values((await import(join(MESSAGES, name))) as Record<string, Catalog>);
      if (catalog === undefined) throw new Error(`${name} exports no catalog.`);
      return [name, catalog];
    }),
);

const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name));
const places = (text: string): readonly string[] => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? "");

describe.each(catalogs)("messages of %s", (file, catalog) => {
  it.each(Object.entries(catalog))("[joy-09a] %s is there in every language, with the same values", (_key, message) => {
    expect(Object.keys(message).toSorted()).toEqual(Object.keys(LANGUAGES).toSorted());
    for (const text of Object.values(message)) {
      expect(text.trim()).not.toBe("");
      expect(new Set(places(text))).toEqual(new Set(places(message.en)));
      expect(text.split("`").length % 2, "backticks come in pairs").toBe(1);
    }
  });

  it("[joy-09b] every message is used", () => {
    const name = file.replace(/\.ts$/, "").replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    const code = files
      .filter((path) => !path.startsWith("messages"))
      .map((path) => readFileSync(join(SOURCE, path), "utf8"))
      .join("\n");
    for (const key of Object.keys(catalog))
      expect(code, `${file}: ${key}`).toMatch(new RegExp(`\\b${name}\\.${key}\\b`));
  });
});

describe("text in views", () => {
  const moved = files.filter((path) => MOVED.some((place) => path.startsWith(place)) && !NOT_YET.has(path));
  it.each(moved)("[joy-09b] %s has none of its own", (path) => {
    expect(textsIn(readFileSync(join(SOURCE, path), "utf8"))).toEqual([]);
  });

  it("[joy-09b] is noticed where there is some", () => {
    expect(textsIn(`const a = <p title="A word" className="b">Some text {"more text"}</p>;`)).toEqual([
      "A word",
      "Some text",
      "more text",
    ]);
    expect(textsIn("const a = <p title={b ? `${c} missing` : undefined}>{d ? 'yes' : e ?? 'no'}</p>;")).toEqual([
      "missing",
      "yes",
      "no",
    ]);
    expect(textsIn(`const a = { word: "new", b: ["1h", "Last hour"] }; toast("Done");`)).toEqual([
      "new",
      "Last hour",
      "Done",
    ]);
    expect(
      textsIn(
        `if (key === "Escape") throw new Error("Not a text of the page"); const a = <p className={b ? "c" : "d"} />;`,
      ),
    ).toEqual([]);
  });
});

/** Keys and attributes whose values are shown or read aloud. */
const SHOWN = ["title", "label", "hint", "description", "word", "meaning", "message"];
const READ_ALOUD: Readonly<Record<string, ReadonlySet<unknown>>> = {
  Property: new Set(SHOWN),
  JSXAttribute: new Set([...SHOWN, "placeholder", "alt", "action", "aria-label", "aria-description"]),
};

type Node = Readonly<Record<string, unknown>> & { readonly type: string };
const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && "type" in value;

/** Words that a person would read: between tags, in what is shown or read aloud, and sentences wherever they stand. */
function textsIn(code: string): readonly string[] {
  const found = new Set<string>();
  const take = (text: unknown, pattern = /\p{L}{2}/u): void => {
    if (typeof text === "string" && pattern.test(text) && !NAMES.has(text.trim())) found.add(text.trim());
  };
  /** The texts that an expression can result in. */
  const takeValue = (node: unknown): void => {
    if (!isNode(node)) return;
    if (node.type === "Literal") take(node["value"]);
    if (node.type === "TemplateLiteral")
      for (const { value } of node["quasis"] as { readonly value: { readonly cooked: string } }[]) take(value.cooked);
    if (node.type === "ConditionalExpression") [node["consequent"], node["alternate"]].forEach(takeValue);
    if (node.type === "LogicalExpression") [node["left"], node["right"]].forEach(takeValue);
    if (node.type === "JSXExpressionContainer") takeValue(node["expression"]);
  };
  const visit = (node: unknown, inAttribute = false): void => {
    if (Array.isArray(node)) return node.forEach((each) => visit(each));
    if (!isNode(node) || node.type === "ImportDeclaration" || node.type === "ThrowStatement") return;
    const key = node["key"] ?? node["name"];
    const name = isNode(key) ? key["name"] : undefined;
    if (node.type === "JSXText") take(node["value"]);
    if (node.type === "JSXExpressionContainer" && !inAttribute) takeValue(node["expression"]);
    if (READ_ALOUD[node.type]?.has(name) === true) takeValue(node["value"]);
    if (node.type === "CallExpression" && isNode(node["callee"]) && node["callee"]["name"] === "toast")
      (node["arguments"] as unknown[]).forEach(takeValue);
    if (node.type === "Literal") take(node["value"], /^\p{Lu}\p{Ll}+,? \p{L}/u);
    for (const part of Object.values(node)) visit(part, node.type === "JSXAttribute");
  };
  visit(parseAst(code, { lang: "tsx" }));
  return [...found];
}

describe("a message", () => {
  afterEach(() => setLanguage("en"));
  const calls: Message = {
    en: "{count} call of {client} | {count} calls of {client}",
    de: "{count} Aufruf von {client} | {count} Aufrufe von {client}",
    zh: "{client} 的 {count} 个调用",
    ja: "{client} の呼び出し {count} 件",
  };

  it("[joy-09a] has its values and the form for their number", () => {
    expect(t(calls, { count: 1, client: "ada" })).toBe("1 call of ada");
    expect(t(calls, { count: 12_000, client: "ada" })).toBe("12,000 calls of ada");
    setLanguage("de");
    expect(t(calls, { count: 12_000, client: "ada" })).toBe("12.000 Aufrufe von ada");
    setLanguage("ja");
    expect(t(calls, { count: 1, client: "ada" })).toBe("ada の呼び出し 1 件");
  });

  it("[joy-09a] does not read values as messages", () => {
    expect(t(calls, { count: 2, client: "{count} | `x`" })).toBe("2 calls of {count} | `x`");
  });

  it("[joy-09a] gives parts where a value is more than text", () => {
    const message: Message = { en: "Run `a b` or {link}.", de: "", zh: "", ja: "" };
    expect(partsOf<unknown>(message, { link: { to: "/" } })).toEqual([
      { text: "Run " },
      { code: "a b" },
      { text: " or " },
      { value: { to: "/" } },
      { text: "." },
    ]);
  });

  it("[joy-09a] is in the first language of the browser that the page has", () => {
    expect(languageFor(["fr-FR", "zh-Hant-TW", "en"])).toBe("zh");
    expect(languageFor(["fr"])).toBe("en");
    expect(languageFor(["constructor"])).toBe("en");
    expect(currentLanguage()).toBe("en");
  });
});
