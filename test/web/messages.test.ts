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
  it.each(files.filter((path) => !path.startsWith("messages")))("[joy-09b] %s has none of its own", (path) => {
    expect(textsIn(readFileSync(join(SOURCE, path), "utf8"))).toEqual([]);
  });

  it("[joy-09b] is noticed where there is some", () => {
    expect(
      textsIn(`const a = <p title="a word" className="b">Some text {"more text"} {open ? "on" : \`off \${at}\`}</p>;`),
    ).toEqual(["a word", "Some text", "more text", "on", "off"]);
    expect(
      textsIn(`const WORDS = { on: "Switched on" }; toast("It is on."); const row = ["State", \`not \${b} yet\`];`),
    ).toEqual(["Switched on", "It is on.", "State"]);
    expect(
      textsIn(`if (event.key === "Enter") throw new TypeError("It is broken."); const look = "flex items-center";`),
    ).toEqual([]);
  });
});

const READ_ALOUD = new Set([
  "title",
  "label",
  "placeholder",
  "hint",
  "description",
  "alt",
  "action",
  "aria-label",
  "aria-description",
]);

/** Names, names of keys, values of attributes, and an argument of a call to try. */
const NO_WORDS = new Set([
  "Toolcrib",
  "Hello from Toolcrib",
  "Claude Code",
  "Agent Skills",
  "Linux",
  "Windows",
  "Streamable HTTP",
  "Notification",
  "Ctrl",
  "Home",
  "End",
  "Enter",
  "Esc",
  "noopener noreferrer",
  "undefined",
  "&quot;",
]);

/** Where text is no word of the page: imports and types, comparisons, errors for developers, looks. */
function isElsewhere(part: Part): boolean {
  if (/^(?:Import|ExportAll|TSType|TSInterface)/.test(part.type)) return true;
  if (part.type === "BinaryExpression") return /==/.test(String(part["operator"]));
  if (part.type === "NewExpression")
    return (part["callee"] as { readonly name?: string }).name?.endsWith("Error") === true;
  return part.type === "JSXAttribute" && (part["name"] as { readonly name: unknown }).name === "className";
}

type Part = Record<string, unknown> & { readonly type: string };

/**
 * Words that a person would read: all text between tags and in the attributes that are shown or read aloud; elsewhere what begins
 * like a sentence, or is several words.
 */
function textsIn(code: string): readonly string[] {
  const found: string[] = [];
  const take = (text: unknown, isShown: boolean): void => {
    if (typeof text !== "string" || NO_WORDS.has(text.trim())) return;
    const reads = isShown
      ? /\p{L}{2}/u.test(text)
      : /^\s*\p{Lu}\p{Ll}+(?:[\s.,:]|$)|^\s*[\p{L}’']{2,}(?: [\p{L}’',.]+)+\s*$/u.test(text);
    if (reads) found.push(text.trim());
  };
  const visit = (node: unknown, isShown: boolean): void => {
    if (Array.isArray(node)) return node.forEach((each) => visit(each, isShown));
    if (typeof node !== "object" || node === null || !("type" in node)) return;
    // A node of the parser, of which no more is known.
    const part = node as Part;
    if (isElsewhere(part)) return;
    switch (part.type) {
      case "JSXText":
        return take(part["value"], true);
      case "Literal":
        return take(part["value"], isShown);
      case "TemplateElement":
        return take((part["value"] as { readonly cooked: unknown }).cooked, isShown);
      case "Property":
        return visit(part["value"], false);
      case "JSXElement":
      case "JSXFragment":
        visit(part["openingElement"], false);
        return visit(part["children"], true);
      case "JSXAttribute":
        return visit(part["value"], READ_ALOUD.has(String((part["name"] as { readonly name: unknown }).name)));
      case "ConditionalExpression":
        visit(part["test"], false);
        return [part["consequent"], part["alternate"]].forEach((each) => visit(each, isShown));
      case "LogicalExpression":
        visit(part["left"], false);
        return visit(part["right"], isShown);
      case "JSXExpressionContainer":
      case "TemplateLiteral":
        return Object.values(part).forEach((each) => visit(each, isShown));
    }
    Object.values(part).forEach((each) => visit(each, false));
  };
  visit(parseAst(code, { lang: "tsx" }), false);
  return found;
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
