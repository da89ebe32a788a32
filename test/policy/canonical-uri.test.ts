import { posix } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ToolRules } from "../../src/model/tool-rules.ts";
import { spellingsOf } from "../../src/policy/canonical-uri.ts";
import { Policy, type PolicySubject } from "../../src/policy/decide.ts";

function decide(rules: ToolRules, uri: string, more: Partial<PolicySubject> = {}): string {
  const policy = new Policy({ hub: rules, where: "toolcrib.json", servers: new Map() });
  const subject: PolicySubject = { kind: "resource", publicName: uri, originName: uri, server: "files", ...more };
  return policy.decide(subject, { owner: true }).verdict;
}

/** Judges that share no code with the product. */
function whatwg(uri: string): string | undefined {
  return URL.canParse(uri) ? new URL(uri).href : undefined;
}

/** RFC 3986, 6.2.2: case, percent-encoding and path segments. */
function rfc3986(uri: string): string | undefined {
  const match = /^([a-z][a-z0-9+.-]*):(?:\/\/([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?$/i.exec(uri);
  if (match === null) return undefined;
  const [, scheme = "", authority, path = "", query = "", fragment = ""] = match;
  const host = authority === undefined ? "" : `//${plainCodes(authority).toLowerCase()}`;
  return `${scheme.toLowerCase()}:${host}${removeDotSegments(plainCodes(path))}${plainCodes(query)}${plainCodes(fragment)}`;
}

function plainCodes(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (code, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16));
    return /[A-Za-z0-9._~-]/.test(character) ? character : code.toUpperCase();
  });
}

/** Section 5.2.4, step by step. */
function removeDotSegments(path: string): string {
  let [input, output] = [path, ""];
  while (input !== "") {
    if (/^\.\.?\//.test(input)) input = input.replace(/^\.\.?\//, "");
    else if (/^\/\.(?:\/|$)/.test(input)) input = input.replace(/^\/\.(?:\/|$)/, "/");
    else if (/^\/\.\.(?:\/|$)/.test(input)) {
      input = input.replace(/^\/\.\.(?:\/|$)/, "/");
      output = output.replace(/\/?[^/]*$/, "");
    } else if (input === "." || input === "..") input = "";
    else {
      const [segment = ""] = /^\/?[^/]*/.exec(input) ?? [];
      output += segment;
      input = input.slice(segment.length);
    }
  }
  return output;
}

/** The file that a server opens which takes the path of a `file:` URL, decodes it and resolves it. */
function opened(uri: string): string | undefined {
  if (!URL.canParse(uri)) return undefined;
  const { protocol, pathname } = new URL(uri);
  if (protocol !== "file:") return undefined;
  try {
    return posix.resolve(decodeURIComponent(pathname));
  } catch {
    return undefined;
  }
}

type Rewrite = (uri: string, at: number) => string;

const HEX = ["toUpperCase", "toLowerCase"] as const;
const encoded = (character: string, at: number): string =>
  `%${(character.codePointAt(0) ?? 0).toString(16).padStart(2, "0")[HEX[at % 2] ?? "toString"]()}`;

/** One position of the URI's path, by a number of any size. */
function inPath(uri: string, at: number, change: (before: string, after: string) => string): string {
  const start = uri.indexOf("/", uri.indexOf(":") + 3);
  if (start < 0) return uri;
  const end = uri.search(/[?#]|$/);
  const slashes = [...uri.slice(start, end)].flatMap((character, index) => (character === "/" ? [start + index] : []));
  const place = slashes[at % Math.max(1, slashes.length)];
  return place === undefined ? uri : change(uri.slice(0, place), uri.slice(place));
}

const REWRITES: Readonly<Record<string, Rewrite>> = {
  schemeCase: (uri, at) =>
    uri.replace(/^[a-z]+/i, (scheme) => scheme.replace(/./g, (c, i: number) => ((at >> i) & 1 ? c.toUpperCase() : c))),
  hostCase: (uri) => uri.replace(/\/\/[^/?#]*/, (host) => host.toUpperCase()),
  blank: (uri, at) => [" ", "\t", "\n", "\u0001", "\0"][at % 5] + uri,
  trailingBlank: (uri, at) => uri + (["\u0020", "\r\n", "\u001f"][at % 3] ?? ""),
  inside: (uri, at) => `${uri.slice(0, at % uri.length)}${["\t", "\n", "\r"][at % 3]}${uri.slice(at % uri.length)}`,
  encode: (uri, at) => {
    const start = uri.indexOf("/", uri.indexOf(":") + 3);
    const places = [...uri.slice(start)].flatMap((c, index) => (/[A-Za-z0-9._~-]/.test(c) ? [start + index] : []));
    const place = places[at % Math.max(1, places.length)] ?? 0;
    const isCode = /%[0-9a-f]?$/i.test(uri.slice(0, place));
    return isCode ? uri : uri.slice(0, place) + encoded(uri.charAt(place), at) + uri.slice(place + 1);
  },
  dot: (uri, at) => inPath(uri, at, (before, after) => `${before}/${["%2e", ".", "%2E"][at % 3]}${after}`),
  dotDot: (uri, at) =>
    inPath(uri, at, (before, after) => `${before}/public/${["..", "%2e.", ".%2E", "%2e%2e"][at % 4]}${after}`),
  encodedSlash: (uri, at) => inPath(uri, at, (before, after) => `${before}/a%2Fb/..${after}`),
  decodedSlash: (uri, at) => inPath(uri, at, (before, after) => `${before}/a%2F..${after}`),
  doubleSlash: (uri, at) => inPath(uri, at, (before, after) => `${before}/${after}`),
  emptySegment: (uri, at) => inPath(uri, at, (before, after) => `${before}//..${after}`),
  backslash: (uri, at) => inPath(uri, at, (before, after) => `${before}\\${after.slice(1)}`),
  oneSlash: (uri) => uri.replace(/^(file):\/\/\//i, "$1:/"),
  localhost: (uri, at) => uri.replace(/^(file):\/\/\//i, `$1://${["localhost", "LocalHost", "%6cocalhost"][at % 3]}/`),
  port: (uri) => uri.replace(/^(https:\/\/[^/:]+)\//i, "$1:443/"),
  fewSlashes: (uri) => uri.replace(/^(https):\/\//i, "$1:/"),
  wideHost: (uri) => uri.replace(/^(https:\/\/)e/i, "$1ｅ"),
};

const segment = fc.stringMatching(/^[A-Za-z0-9_~-][A-Za-z0-9_~.-]{0,6}$/).filter((text) => !text.endsWith("."));
const deniedUri = fc
  .tuple(
    fc.constantFrom("file://", "https://example.com", "notes://vault", "db+x://h.example"),
    fc.array(segment, { minLength: 1, maxLength: 4 }),
    fc.constantFrom("", "?y=1"),
  )
  .map(([start, segments, query]) => `${start}/${segments.join("/")}${start === "file://" ? "" : query}`);
const steps = fc.array(fc.tuple(fc.constantFrom(...Object.keys(REWRITES)), fc.nat({ max: 1000 })), { maxLength: 6 });
const respelled = (uri: string, chosen: readonly (readonly [string, number])[]): string =>
  chosen.reduce((text, [name, at]) => REWRITES[name]?.(text, at) ?? text, uri);

/** Which judges say that both are the same. */
function judgesFor(spelled: string, uri: string): string[] {
  const judges = { whatwg, rfc3986, opened };
  return Object.entries(judges).flatMap(([name, judge]) => {
    const meant = judge(uri);
    return meant !== undefined && judge(spelled) === meant ? [name] : [];
  });
}

describe("[trust-03a] any spelling that a normaliser maps to a denied URI", () => {
  it("is denied, and asked about by an ask rule", () => {
    const agreed = new Map<string, number>();
    fc.assert(
      fc.property(deniedUri, steps, (uri, chosen) => {
        const spelled = respelled(uri, chosen);
        const judges = judgesFor(spelled, uri);
        for (const judge of judges) if (spelled !== uri) agreed.set(judge, (agreed.get(judge) ?? 0) + 1);
        if (judges.length === 0) return;
        expect([spelled, decide({ deny: [uri] }, spelled)]).toEqual([spelled, "deny"]);
        expect([spelled, decide({ ask: [uri] }, spelled)]).toEqual([spelled, "ask"]);
      }),
      { numRuns: 3000 },
    );
    // A property that is never put to the test proves nothing.
    for (const judge of ["whatwg", "rfc3986", "opened"])
      expect([judge, (agreed.get(judge) ?? 0) > 200]).toEqual([judge, true]);
  });

  it("is denied by a rule on everything below it, and no exception beside it lets it in", () => {
    let tried = 0;
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 3 }), steps, (segments, chosen) => {
        const uri = `file:///private/${segments.join("/")}`;
        const spelled = respelled(uri, chosen);
        if (judgesFor(spelled, uri).length === 0) return;
        tried += 1;
        expect([spelled, decide({ deny: ["file:///private/*"] }, spelled)]).toEqual([spelled, "deny"]);
        for (const exception of ["!file:///public/*", "!*/public/*", "!file:///*/../*", "!file:///a*"]) {
          const rules = { deny: ["file:///*", exception] };
          if (decide(rules, spelled) !== "deny") expect([spelled, exception]).toEqual([]);
        }
      }),
      { numRuns: 2000 },
    );
    expect(tried).toBeGreaterThan(500);
  });

  it("may be how the rule is written", () => {
    fc.assert(
      fc.property(deniedUri, steps, (uri, chosen) => {
        const rule = respelled(uri, chosen);
        // These are wildcards in a rule, and a rule that begins with ! is an exception.
        if (/[*?!]/.test(rule) || !judgesFor(rule, uri).some((judge) => judge !== "opened")) return;
        expect([rule, decide({ deny: [rule] }, uri)]).toEqual([rule, "deny"]);
      }),
      { numRuns: 2000 },
    );
  });

  it("never takes more readings than are counted, whatever the text", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.constantFrom(
            "%25",
            "%2e",
            "..",
            "/",
            "\\",
            "%2F",
            "%3F",
            "#",
            "?",
            "@",
            ":",
            "%00",
            "a",
            "file:",
            " ",
            "é",
          ),
          {
            maxLength: 60,
          },
        ),
        (parts) => {
          expect((spellingsOf(parts.join("")) ?? []).length).toBeLessThanOrEqual(110);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

const SECRET = "file:///private/secret.txt";

describe("[trust-03b] a rule on a URI", () => {
  it.each([
    "FILE:///private/secret.txt",
    "file:///public/../private/secret.txt",
    "file:///%70rivate/secret.txt",
    "file:///%2570rivate/secret.txt",
    "file:///%252570rivate/secret.txt",
    "file://localhost/private/secret.txt",
    "file://elsewhere/private/secret.txt",
    "file:/private/secret.txt",
    "file:private/secret.txt",
    "file:////private/secret.txt",
    "file:///private//secret.txt",
    "file:///private/./secret.txt",
    "file:///private/secret.txt/",
    "file:///private/secret.txt/.",
    "file:///private/secret.txt?raw",
    "file:///private/secret.txt#L1",
    "file:///private/secret.txt%3Fraw",
    "file:///public/..%2fprivate/secret.txt",
    "file:///public%5c..%5cprivate/secret.txt",
    "file:\\\\\\private\\secret.txt",
    "file:///a%2Fb\\a%2F../../private/secret.txt",
    " file:///private/secret.txt",
    "\u00a0file:///private/secret.txt\ufeff",
    "fi\tle:///pri\nvate/secret.txt",
    "/private/secret.txt",
    "file:///private/secret.txt%00.png",
    "file:///../../private/secret.txt",
  ])("applies to %j", (uri) => {
    expect(decide({ deny: [SECRET] }, uri)).toBe("deny");
    expect(decide({ ask: ["file:///private/*"] }, uri)).toBe("ask");
  });

  it.each([
    ["https://example.com/x", "HTTPS://user:pw@EXAMPLE.com.:443/x#top"],
    ["https://127.0.0.1/x", "https://0x7f.1/x"],
    ["https://bücher.example/x", "https://xn--bcher-kva.example/x"],
    ["https://xn--bcher-kva.example/x", "https://BÜCHER.example/x"],
    ["https://example.com", "https://example.com/"],
    ["https://example.com/x", "https:///example.com/x"],
    ["=resource:https://example.com/x", "https:///example.com/x"],
    ["=resource:https://example.com/x", "HTTPS://example.com/a/../x"],
    ["notes://private/x", "notes://private/x?"],
    ["notes://private/x", "notes://public/../private/x"],
    ["notes:///private/x", "notes:/private/x"],
    ["notes:///private/x", "notes:///public\\x/../private/x"],
    ["file:///C:/x", "file:///c|/x"],
    ["file:///caf\u00e9", "file:///cafe%CC%81"],
    ["urn:a:b", "URN:a:%62"],
    ["*/private/*", "file:///%70rivate/x"],
    ["*/%70rivate/*", "file:///private/x"],
    ["FILE:/private/*", "file:///private/x"],
    ["File*", "file:///x"],
    ["https://*.Example.com/*", "https://a.example.com/x"],
  ])("%j applies to %j", (rule, uri) => {
    expect(decide({ deny: [rule] }, uri)).toBe("deny");
  });

  it("leaves alone what is something else", () => {
    const deny = ["file:///private/*", "https://example.com/x", "notes://vault/a", "file:///what%3F"];
    for (const uri of [
      "file:///public/private.txt",
      "file:///public/a%20b.txt",
      "file:///Private/x",
      "file:///privateer/x",
      "https://example.com/x?page=2",
      "https://example.com/xy",
      "notes://vault/a/b",
      "notes://other/a",
      "file:///what",
      "mailto:a@example.com",
    ]) {
      expect([uri, decide({ deny }, uri)]).toEqual([uri, "allow"]);
    }
  });

  it("applies at every level", () => {
    const rules = { deny: ["file:///private/*"] };
    const subject: PolicySubject = { kind: "resource", publicName: "FILE:/private/x", originName: "", server: "files" };
    const hub = { hub: {}, where: "toolcrib.json" };
    const files = { where: "server files", rules };
    const bot = { where: "role bot", rules };
    const servers = new Map([["files", { where: "server files" }]]);
    const levels = [
      new Policy({ ...hub, servers: new Map([["files", files]]) }).decide(subject, { owner: true }),
      new Policy({ ...hub, servers, roles: new Map([["bot", bot]]) }).decide(subject, { owner: true, role: "bot" }),
      new Policy({ ...hub, servers }).decide(subject, { owner: true, rules }),
      new Policy({ ...hub, servers }).decide({ ...subject, mounted: files }, { owner: true }),
    ];
    expect(levels.map(({ verdict, rule }) => [verdict, rule?.level])).toEqual([
      ["deny", "server"],
      ["deny", "role"],
      ["deny", "session"],
      ["deny", "server"],
    ]);
  });

  it("is about resources: names of tools and prompts are matched as written", () => {
    const rules = { deny: ["file:///a"] };
    for (const kind of ["tool", "prompt"] as const) expect(decide(rules, "FILE:///a", { kind })).toBe("allow");
  });

  it("applies to what is too long or too deeply encoded to be told, and exceptions do not", () => {
    const deep = `file:///%${"25".repeat(30)}70ublic/x`;
    for (const uri of [`file:///public/${"x".repeat(9000)}`, deep, "file:///public/%00"]) {
      expect(decide({ deny: ["notes://x"] }, uri)).toBe("deny");
      expect(decide({ ask: ["*__delete_*"] }, uri)).toBe("ask");
      expect(decide({ ask: ["file:///*", "!file:///public/*"] }, uri)).toBe("ask");
      expect(decide({ deny: ["files__*", "tag:x", "destructive"] }, uri)).toBe("allow");
    }
  });

  it("has exceptions for the URI as written, in all its spellings", () => {
    const ask = ["file:///*", "!file:///public/*", "!file:///what%3F.txt", "!FILE:///private/a"];
    expect(decide({ ask }, "file:///public/a%20b.txt")).toBe("allow");
    expect(decide({ ask }, "file:///public/a/../b")).toBe("allow");
    expect(decide({ ask }, "file:///what%3F.txt")).toBe("allow");
    expect(decide({ ask }, "FILE:///private/a")).toBe("allow");
    expect(decide({ ask }, "file:///private/a")).toBe("ask");
    expect(decide({ ask }, "FILE:///public/a")).toBe("ask");
    expect(decide({ ask }, "file:///public/../private/b")).toBe("ask");
    expect(decide({ ask }, "file:///public/..%2fprivate/b")).toBe("ask");
    expect(decide({ ask }, "file:///public/%252e%252e/private/b")).toBe("ask");
  });

  it("has exceptions for what is read through a template, not for the template that it fits", () => {
    const through = (read: string): Partial<PolicySubject> => ({
      kind: "template",
      publicName: "file:///public/{+path}",
      originName: "file:///public/{+path}",
      read: [read],
    });
    const ask = ["file:///*", "!file:///public/*"];
    expect(decide({ ask }, "", through("file:///public/a"))).toBe("allow");
    expect(decide({ ask }, "", through("file:///public/../private/a"))).toBe("ask");
    // Whoever writes the template down means it.
    expect(decide({ ask: ["file:///*", "!file:///public/{+path}"] }, "", through("file:///public/a"))).toBe("allow");
  });
});
