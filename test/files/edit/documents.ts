/** Random documents in each format, in the layouts that people and programs leave behind. Every comment has one `§`. */
import fc from "fast-check";
import type { TextEditor } from "../../../src/files/edit/text-editor.ts";

type Text = fc.Arbitrary<string>;

const keys = fc.constantFrom("a", "b-c", "theme", "d.e", "f g", "$h", "mcpServers2", "ünï");
/** The last character of a text is sometimes missing, sometimes there twice. */
const endings = fc.constantFrom("", "\n", "\n\n", "  ", "\n \n");

/** Line breaks of one kind or the other; a byte order mark at times. */
function finished(text: Text): Text {
  return fc
    .tuple(text, fc.constantFrom("\n", "\n", "\r\n"), fc.constantFrom("", "", "\uFEFF"))
    .map(([plain, lineBreak, mark]) => mark + plain.replaceAll("\n", lineBreak));
}

function jsonDocuments(isJson5: boolean): Text {
  const blanks = fc.constantFrom("", "", " ", "  ", "\t", "\n", "\n  ", "\n\n    ", " \n\t");
  const comments = fc.constantFrom("/*§*/", "/* §, } */", "/* §\n */", "//§\n", "// §: {,\n", "// §\n  ");
  const trivia = fc
    .array(fc.oneof({ weight: 4, arbitrary: blanks }, comments), { maxLength: 2 })
    .map((all) => all.join(""));
  const quoted = (text: string): Text =>
    isJson5 ? fc.constantFrom(JSON.stringify(text), `'${text}'`) : fc.constant(JSON.stringify(text));
  const key = (text: string): Text =>
    isJson5 && /^[\w$]+$/.test(text) ? fc.oneof(quoted(text), fc.constant(text)) : quoted(text);
  const scalars = fc.oneof(
    fc.constantFrom("1", "true", "null", "-2.5e3", '"}, //"', '"\\"\\u0041"'),
    isJson5 ? fc.constantFrom("0xFF", "+.5", "NaN", "-Infinity", "'\\'/*'", "'a\\\nb'") : fc.constant("0"),
  );
  const { object } = fc.letrec<{ object: string; list: string; value: string }>((tie) => ({
    value: fc.oneof({ maxDepth: 3 }, scalars, tie("object"), tie("list")),
    list: bracketed("[", fc.array(around(trivia, tie("value")), { maxLength: 3 }), "]", trivia),
    object: bracketed("{", members(tie("value")), "}", trivia),
  }));
  function members(value: Text): fc.Arbitrary<string[]> {
    return fc
      .uniqueArray(fc.oneof(keys, fc.constant("mcpServers")), { maxLength: 4 })
      .chain((names) => fc.tuple(...names.map((name) => member(name, name === "mcpServers" ? object : value))));
  }
  function member(name: string, value: Text): Text {
    return around(
      trivia,
      fc.tuple(key(name), trivia, trivia, value).map(([k, x, y, v]) => `${k}${x}:${y}${v}`),
    );
  }
  const pretty = fc
    .tuple(fc.dictionary(keys, fc.jsonValue({ maxDepth: 2 })), fc.constantFrom(0, 2, 4, "\t"))
    .map(([value, indent]) => JSON.stringify(value, null, indent));
  const none = around(trivia, fc.constant(""));
  const document = fc.tuple(trivia, fc.oneof(object, pretty), trivia, endings).map((parts) => parts.join(""));
  return finished(fc.oneof({ weight: 8, arbitrary: document }, none));
}

function around(trivia: Text, value: Text): Text {
  return fc.tuple(trivia, value, trivia).map((parts) => parts.join(""));
}

function bracketed(open: string, members: fc.Arbitrary<string[]>, close: string, trivia: Text): Text {
  return fc
    .tuple(members, fc.constantFrom("", ","), trivia)
    .map(([all, comma, last]) => `${open}${all.join(",")}${all.length === 0 ? "" : comma}${last}${close}`);
}

/** Lines of a block without their common indent. */
type Lines = fc.Arbitrary<string[]>;

function yamlDocuments(): Text {
  const key = fc.constantFrom("a", "b-c", '"d: e"', "'f'", "theme", "? g\n");
  const above = fc.constantFrom<string[]>([], [], [], ["# §"], [""], ["  # §"], ["", "# § b"]);
  const behind = fc.constantFrom("", "", " # §", "  ");
  const plain = fc
    .constantFrom("1", "text with: no", "'q # no'", '"\\u0041, {"', "~", "[1, {x: y}]", "{ a: 1, 'b': 2, }", "!!str 3")
    .map((text) => (text.includes(": no") ? "text" : text));
  const texts = fc.constantFrom<string[]>(
    ["|", "  x", "", "  # no comment"],
    ["|+", "  x", "", ""],
    [">-", "  y", "  z", ""],
    ["'two", "", "  lines'"],
    ["plain", "  goes on"],
  );
  const inner = fc.constantFrom("  ", "    ", " ");
  const { map } = fc.letrec<{ map: string[]; list: string[]; value: string[] }>((tie) => ({
    map: fc
      .uniqueArray(key, { minLength: 1, maxLength: 4 })
      .chain((names) => fc.tuple(...names.map((name) => pair(name, tie("value")))))
      .map((all) => all.flat()),
    list: fc
      .array(
        fc.oneof(
          plain.map((text) => [`- ${text}`]),
          tie("map").map(asItem),
        ),
        { minLength: 1, maxLength: 3 },
      )
      .map((all) => all.flat()),
    value: fc.oneof(
      { maxDepth: 3 },
      fc.tuple(plain, behind).map(([text, tail]) => [` ${text}${tail}`]),
      texts.map(([first, ...rest]) => [` ${first}`, ...rest]),
      behind.map((tail) => [tail]),
      fc.tuple(behind, tie("map"), inner).map(([tail, lines, indent]) => [tail, ...indented(lines, indent)]),
      fc
        .tuple(behind, tie("list"), fc.constantFrom("", "  "))
        .map(([tail, lines, indent]) => [tail, ...indented(lines, indent)]),
    ),
  }));
  function pair(name: string, value: Lines): Lines {
    return fc
      .tuple(above, value)
      .map(([comments, [first = "", ...rest]]) =>
        name.endsWith("\n")
          ? [...comments, name.trimEnd(), `:${first === "" ? " x" : first}`, ...rest]
          : [...comments, `${name}:${first}`, ...rest],
      );
  }
  const servers = fc.oneof(
    fc.constantFrom<string[]>(
      ["mcpServers:"],
      ["mcpServers: # §", "  # § none"],
      ["mcpServers: {}"],
      ["mcpServers: { } # §"],
      ["mcpServers: { x: {c: 1} }"],
      ["mcpServers: {", "  x: 1, # §", "  y: 2", "  }"],
    ),
    fc.tuple(map, inner).map(([lines, indent]) => ["mcpServers:", ...indented(lines, indent)]),
  );
  const blocks = fc
    .tuple(
      fc.constantFrom<string[]>([], [], ["---"], ["# §", "---", "# §"]),
      map,
      fc.option(servers, { nil: [] }),
      fc.constantFrom(0, 1, 2),
    )
    .map(([head, lines, extra, place]) =>
      [...head, ...(place === 0 ? [...extra, ...lines] : [...lines, ...extra])].join("\n"),
    );
  const others = fc.constantFrom(
    "",
    "# §",
    "---",
    "{}",
    "{ }",
    "{a: 1}",
    "{a: 1, # §\n b: [2]}",
    "---\n# §\n...",
    "{ mcpServers: {} }",
  );
  const document = fc.oneof({ weight: 8, arbitrary: blocks }, others);
  return finished(fc.tuple(document, endings).map(([text, ending]) => text + (text.endsWith("...") ? "\n" : ending)));
}

/** A map behind a dash; comments cannot come before its first key there. */
function asItem(lines: string[]): string[] {
  const start = lines.findIndex((line) => line.trim() !== "" && !line.trim().startsWith("#"));
  return lines.slice(start).map((line, index) => (index === 0 ? `- ${line}` : line === "" ? "" : `  ${line}`));
}

function indented(lines: string[], indent: string): string[] {
  return lines.map((line) => (line === "" ? "" : indent + line));
}

function tomlDocuments(): Text {
  const behind = fc.constantFrom("", "", " # §", "  ");
  const value = fc.constantFrom(
    "1",
    '"# no"',
    "'''\n[no]\n'''",
    "[1, # §\n  2,\n]",
    "{ a = 1 }",
    "1979-05-27",
    "0xFF",
    "-inf",
    '"""a\\\n  b"""',
    "{}",
    "[]",
    "9007199254740993",
  );
  const above = fc.constantFrom("", "", "", "# §\n", "\n", "# §\n\n", "  ");
  const name = fc.constantFrom("a", "b-c", '"d.e"', "'f g'", "h.i", "h.j");
  const row = (key: string): Text =>
    fc.tuple(above, value, behind).map(([lead, one, tail]) => `${lead}${key} = ${one}${tail}\n`);
  const rows = fc
    .uniqueArray(name, { maxLength: 3 })
    .chain((all) => fc.tuple(...all.map(row)))
    .map((all: string[]) => all.join(""));
  const header = fc.constantFrom(
    "[one]",
    "[one.two]",
    "[ three ]",
    "[[four]]",
    "[mcpServers]",
    "[mcpServers.x]",
    "[mcpServers.x.env]",
    '[mcpServers."y.z"]',
  );
  const tables = fc
    .uniqueArray(header, { maxLength: 5 })
    .chain((all) =>
      fc.tuple(
        ...all.map((one) => fc.tuple(above, behind, rows).map(([lead, tail, body]) => `${lead}${one}${tail}\n${body}`)),
      ),
    )
    .map((all: string[]) => all.join(""));
  const others = fc.constantFrom(
    "",
    "# §",
    "# §\n\n",
    "mcpServers = {}",
    "mcpServers = { x = { c = 1 } } # §",
    "mcpServers.x.c = 1\n# §\nb = 2",
    "[mcpServers]\nx = { c = 1 }\ny = { }",
    "[mcpServers]\n# §\nx.c = 1\n\n[z]",
  );
  return finished(
    fc
      .tuple(fc.oneof({ weight: 8, arbitrary: fc.tuple(rows, tables).map((all) => all.join("")) }, others), endings)
      .map((all) => all.join("")),
  );
}

export const DOCUMENTS: Readonly<Record<TextEditor["format"], Text>> = {
  jsonc: jsonDocuments(false),
  json5: jsonDocuments(true),
  yaml: yamlDocuments(),
  toml: tomlDocuments(),
};
