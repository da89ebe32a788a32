import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { parseEntry, ToolRulesSchema, type ToolRules } from "../../src/model/tool-rules.ts";
import { type FilePlace, ArgumentReader } from "../../src/policy/argument-values.ts";
import { Policy } from "../../src/policy/decide.ts";
import { type CallFacts, callHash } from "../../src/policy/rule-conditions.ts";

const PLACE: FilePlace = { home: "/home/ann", bases: ["/home/ann/work"] };
const SCHEMA = {
  type: "object",
  properties: { branch: { type: "string" }, path: { type: "string" }, draft: { type: "boolean", default: false } },
};

interface Circumstances extends Partial<CallFacts> {
  /** What links lead to; every other path leads to itself. */
  readonly links?: Readonly<Record<string, string | null>>;
  readonly place?: FilePlace;
}

function decide(rules: ToolRules, args: JsonObject, circumstances?: Circumstances): string {
  return decider(rules)(args, circumstances);
}

/** Decides many calls by the same rules. */
function decider(rules: ToolRules): (args: JsonObject, circumstances?: Circumstances) => string {
  const policy = new Policy({ hub: rules, where: "toolcrib.json", servers: new Map() });
  const subject = { kind: "tool", publicName: "srv__do", originName: "do", server: "srv" } as const;
  const prepared = policy.prepare(subject, { owner: true });
  return (args, { links = {}, place = PLACE, ...given } = {}) => {
    const schema = given.schema ?? SCHEMA;
    const followed = new Map(
      prepared
        .paths(args, schema, place)
        .map((path) => [path, Object.hasOwn(links, path) ? (links[path] ?? null) : path]),
    );
    const facts: CallFacts = {
      arguments: args,
      reader: new ArgumentReader(place, followed),
      tainted: false,
      client: "cursor",
      name: "srv__do",
      now: new Date(2026, 10, 17, 12, 0).getTime(),
      countCalls: () => 0,
      ...given,
      schema,
    };
    return prepared.decide(facts).verdict;
  };
}

/** Whether a condition is taken to hold by a `deny`, and by an `allow`: in doubt it is by the first and not by the second. */
function verdictsOf(condition: string, args: JsonObject, given?: Circumstances): string {
  const denied = decide({ deny: [`srv__do(${condition})`] }, args, given) === "deny";
  const allowed = decide({ allow: [`srv__do(${condition})`] }, args, given) === "allow";
  expect(allowed && !denied, "what an allow takes for sure is possible, too").toBe(false);
  return allowed ? "yes" : denied ? "doubt" : "no";
}

describe("[shape-01a] a rule on arguments", () => {
  it.each([
    ["branch=main", { branch: "main" }, "yes"],
    ["branch=main", { branch: "dev" }, "no"],
    ["branch!=main", { branch: "dev" }, "yes"],
    ["branch!=main", { branch: "main" }, "no"],
    ["branch=release-*", { branch: "release-1" }, "yes"],
    ["branch=release-?", { branch: "release-12" }, "no"],
    ["branch in (main, release-*)", { branch: "release-1" }, "yes"],
    ["branch in (main, release-*)", { branch: "dev" }, "no"],
    ["n<5", { n: 4 }, "yes"],
    ["n<5", { n: 5 }, "no"],
    ["n<=5", { n: 5 }, "yes"],
    ["n>-1.5", { n: -1 }, "yes"],
    ["n>=1e3", { n: 999 }, "no"],
    ["n=5", { n: 5 }, "yes"],
    ["n!=5", { n: 5 }, "no"],
    ["force=true", { force: true }, "yes"],
    ["force=true", { force: false }, "no"],
    ["branch=main, force=true", { branch: "main", force: true }, "yes"],
    ["branch=main, force=true", { branch: "main", force: false }, "no"],
    ["issue.title=Bug*", { issue: { title: "Bug in it" } }, "yes"],
    ["issue.labels[*]=internal", { issue: { labels: ["internal"] } }, "yes"],
    ["issue.labels[*]=internal", { issue: { labels: ["bug", "ui"] } }, "no"],
    // One of several: enough to deny, not enough to allow.
    ["issue.labels[*]=internal", { issue: { labels: ["bug", "internal"] } }, "doubt"],
    ["to[*]!=*@acme.com", { to: ["a@acme.com", "b@acme.com"] }, "no"],
    ["to[*]!=*@acme.com", { to: ["a@acme.com", "b@evil.com"] }, "doubt"],
    ['"odd.key"=x', { "odd.key": "x" }, "yes"],
    ['title="a, (b) * c"', { title: "a, (b) * c" }, "yes"],
    ['title="a*"', { title: "ab" }, "no"],
  ] as const)("%s of %j: %s", (condition, args, expected) => {
    expect(verdictsOf(condition, args)).toBe(expected);
  });

  it("[shape-01b] what cannot be decided is denied or asked, and never allowed", () => {
    const nested = (depth: number): JsonObject => (depth === 0 ? { branch: "main" } : { branch: nested(depth - 1) });
    const doubtful: readonly (readonly [string, JsonObject])[] = [
      ["branch=main", {}],
      ["branch!=main", {}],
      ["branch=main", { branch: null }],
      ["branch=main", { branch: "" }],
      ["branch=main", { branch: ["main"] }],
      ["branch=main", { branch: { name: "main" } }],
      ["branch=main", { branch: 7 }],
      ["branch=main", { branch: true }],
      ["branch=main", nested(500)],
      ["branch.name=main", { branch: '{"name":"main"}' }],
      ["labels[*]=x", { labels: "x" }],
      ["labels[*]=x", { labels: [] }],
      ["labels[*]=x", { labels: Array.from({ length: 2000 }, () => "y") }],
      ["labels[*]=x", { labels: [["x"]] }],
      ["n>5", { n: "3" }],
      ["n>5", { n: "6" }],
      ["n<5", { n: Number.NaN }],
      ["n<5", { n: Number.NEGATIVE_INFINITY }],
      ["n=5", { n: "5.0" }],
      ["n=5", { n: " 5" }],
      ["n=5", { n: "0x5" }],
      ["force=true", { force: "true" }],
      ["force=true", { force: "false" }],
      ["force=false", { force: "false" }],
      ["force=false", { force: 0 }],
      ["title=a*", { title: `a ${"x".repeat(70_000)}` }],
      ["title=a*", { title: "a%ff%fe" }],
      ["title=a*", { title: `a%${"25".repeat(9)}41` }],
    ];
    const schema = { type: "object" };
    for (const [condition, args] of doubtful) {
      const given = condition.startsWith("branch") ? undefined : { schema: { ...schema, anyOf: [{}] } };
      expect([condition, args, verdictsOf(condition, args, given)]).toEqual([condition, args, "doubt"]);
      expect(decide({ ask: [`srv__do(${condition})`] }, args, given)).toBe("ask");
      // An exception to what is denied lets through only what is sure, and one to what is allowed takes out what is possible.
      expect(decide({ deny: ["srv__do", `!srv__do(${condition})`] }, args, given)).toBe("deny");
      expect(decide({ allow: ["srv__do", `!srv__do(${condition})`] }, args, given)).toBe("deny");
    }
  });

  it("[shape-01c] an absent argument satisfies a deny unless the tool has no such argument; defaults count as given", () => {
    expect(verdictsOf("draft=false", {})).toBe("yes");
    expect(verdictsOf("draft=true", {})).toBe("no");
    expect(verdictsOf("branch=main", {})).toBe("doubt");
    expect(verdictsOf("other=main", {})).toBe("no");
    expect(verdictsOf("other!=main", {})).toBe("no");
    // A schema that takes parts from elsewhere may know it after all.
    expect(verdictsOf("other=main", {}, { schema: { ...SCHEMA, allOf: [{ $ref: "#/$defs/more" }] } })).toBe("doubt");
    expect(verdictsOf("other=main", {}, { schema: {} })).toBe("doubt");
    const issue = { type: "object", default: { labels: ["internal"] }, properties: {} };
    expect(verdictsOf("issue.labels[*]=internal", {}, { schema: { type: "object", properties: { issue } } })).toBe(
      "yes",
    );
    const list = { type: "array", items: { type: "object", properties: { kind: {} } } };
    const schema = { type: "object", properties: { list } };
    expect(verdictsOf("list[*].path=/etc/**", { list: [{ kind: "a" }, { path: "/etc/passwd" }] }, { schema })).toBe(
      "doubt",
    );
  });

  it("[shape-01b] keys of prototypes are no arguments", () => {
    const schema = { type: "object" };
    for (const key of ["constructor", "toString", "__proto__", "hasOwnProperty"]) {
      expect(verdictsOf(`${key}=x`, {}, { schema })).toBe("no");
      expect(verdictsOf(`${key}.name=Object`, {}, { schema })).toBe("no");
      const own: JsonObject = JSON.parse(`{ "${key}": "x" }`);
      expect(verdictsOf(`${key}=x`, own, { schema })).toBe("yes");
    }
    expect(verdictsOf("length=0", {}, { schema: { properties: Object.create({ length: {} }) } })).toBe("doubt");
  });

  it("[shape-01d] a rule that cannot be read is an error of the config", () => {
    for (const text of [
      "a()",
      "a(b)",
      "a(b=)",
      "a(=c)",
      "a(b=c",
      "!a(b<x)",
      "a(b in c)",
      "a(b in ())",
      'a(b="c)',
      "a(b=c,)",
      "a(b.=c)",
      "a(*=x)",
      "a(b~=c)",
      "a(b==c)",
      "a(b=c)d(e=f)",
      "a (b=c)",
      " a(b=c)",
      "a(b=c) ",
      "a(b in (c)",
      "tag:a(b=c",
    ]) {
      expect([text, ToolRulesSchema.safeParse({ deny: [text] }).success]).toEqual([text, false]);
    }
    // A prompt may have such a name.
    expect(parseEntry("summary (short)")).toEqual({ base: "summary (short)", conditions: [] });
    expect(parseEntry("file:///a(b=c)").conditions).toEqual([]);
    expect(parseEntry("=resource:x(b=c)").conditions).toEqual([]);
    expect(parseEntry("=tool:a(b=c)").base).toBe("=tool:a");
  });

  it("applies to classes, tags and exact names as well", () => {
    expect(decide({ deny: ["writes(path=/etc/**)"] }, { path: "/etc/a" })).toBe("deny");
    expect(decide({ deny: ["=tool:srv__do(path=/etc/**)"] }, { path: "/etc/a" })).toBe("deny");
    expect(decide({ deny: ["readOnly(path=/etc/**)"] }, { path: "/etc/a" })).toBe("allow");
  });
});

describe("[shape-01e] what an attacker writes for a file", () => {
  const secret = "/home/ann/.ssh/id";
  it.each(
    [
      secret,
      "/home/ann/.ssh/",
      "/home/ann/.ssh",
      "/home/ann/work/../.ssh/id",
      "/home/ann/work/../../ann/./.ssh//id",
      "../.ssh/id",
      "./../.ssh/id",
      "~/.ssh/id",
      "~/work/../.ssh/id",
      "$HOME/.ssh/id",
      "${HOME}/.ssh/id",
      "file:///home/ann/.ssh/id",
      "FILE:///home/ann/.ssh/id",
      "file:/home/ann/.ssh/id",
      "file://localhost/home/ann/.ssh/id",
      "file:///home/ann/%2essh/id",
      "/home/ann/%2e%73sh/id",
      "/home/ann/%252e%73sh/id",
      "/home/ann/work/%2e%2e/.ssh/id",
      "/home/ann/work/..%2f.ssh/id",
      "/home/ann/work/%2e%2e%5c.ssh%5cid",
      "/home/ann/work/%c0%ae%c0%ae/.ssh/id",
      "\\home\\ann\\.ssh\\id",
      "/home/ann/work\\..\\.ssh\\id",
      "//home/ann/.ssh/id",
      " /home/ann/.ssh/id",
      "/home/ann/.ssh/id ",
      "/home/ann/.ssh/id\0.png",
      "/home/ann/.ssh/id\n",
      "/HOME/Ann/.SSH/id",
      "/home/ann/.ssh./id",
      "/home/ann/.ssh/id::$DATA",
      "/home/ann/．ssh/id",
      "/home/ann/.s\u200bsh/id",
      "/home/ann/.ssh/id#x",
      "/home/ann/.ss?/id",
      "/home/ann/.ss*/id",
      "~ann/.ssh/id",
      "$SSH_DIR/id",
      "%USERPROFILE%/.ssh/id",
      "\\\\?\\home\\ann\\.ssh\\id",
      "",
    ].filter((text) => text !== "/home/ann/.ss?/id"),
  )("%j does not get past a deny, nor into an allow", (path) => {
    expect(decide({ deny: ["srv__do(path=~/.ssh/**)"] }, { path })).toBe("deny");
    expect(decide({ ask: ["srv__do(path=/home/ann/.ssh/**)"] }, { path })).toBe("ask");
    expect(decide({ allow: ["srv__do(path=~/work/**)"] }, { path })).toBe("deny");
    expect(decide({ deny: ["srv__do(path!=~/work/**)"] }, { path })).toBe("deny");
  });

  it("links are followed, before and after `..`, and so are those that point at nothing yet", () => {
    const links = {
      "/home/ann/work/link": "/home/ann/.ssh",
      "/home/ann/work/link/id": secret,
      "/home/ann/work/new": "/home/ann/.ssh/new",
      "/home/ann/work/other/../x": "/home/ann/.ssh/x",
      "/home/ann/work/loop": null,
    };
    for (const path of ["link/id", "~/work/link/id", "/home/ann/work/link", "new", "other/../x", "loop"]) {
      expect([path, decide({ deny: ["srv__do(path=~/.ssh/**)"] }, { path }, { links })]).toEqual([path, "deny"]);
      expect([path, decide({ allow: ["srv__do(path=~/work/**)"] }, { path }, { links })]).toEqual([path, "deny"]);
      expect([path, decide({ allow: ["srv__do(path=**)"] }, { path }, { links })]).toEqual([path, "allow"]);
      expect([path, decide({ allow: ["srv__do(path=src/**)"] }, { path: `src/../${path}` }, { links })]).toEqual([
        path,
        "deny",
      ]);
    }
    // The folder of the rule is itself a link, as /tmp is on macOS.
    const tmp = { "/tmp": "/private/tmp", "/tmp/a": "/private/tmp/a", "/tmp/b": "/etc/b" };
    expect(decide({ allow: ["srv__do(path=/tmp/**)"] }, { path: "/tmp/a" }, { links: tmp })).toBe("allow");
    expect(decide({ allow: ["srv__do(path=/tmp/**)"] }, { path: "/tmp/b" }, { links: tmp })).toBe("deny");
    expect(decide({ deny: ["srv__do(path=/tmp/**)"] }, { path: "/private/tmp/a" }, { links: tmp })).toBe("deny");
    // A folder called ~ that leads elsewhere.
    const tilde = { "/home/ann/work/~": "/etc" };
    expect(decide({ allow: ["srv__do(path=~/work/**)"] }, { path: "~/work/a" }, { links: tilde })).toBe("deny");
  });

  it.each([
    "~/work/a.txt",
    "/home/ann/work/deep/a.txt",
    "a.txt",
    "./deep/a",
    "file:///home/ann/work/a",
    "/home/ann/work",
    "deep/../a",
    "100% sure.txt",
    "a/[id]/$b.tsx",
  ])("%j is allowed where it belongs", (path) => {
    expect(decide({ allow: ["srv__do(path=~/work/**)"] }, { path })).toBe("allow");
    expect(decide({ deny: ["srv__do(path=~/.ssh/**)"] }, { path })).toBe("allow");
  });

  it("in a path * is one segment to what lets through, and any number to what holds back", () => {
    expect(verdictsOf("path=/srv/*", { path: "/srv/a" })).toBe("yes");
    expect(verdictsOf("path=/srv/*", { path: "/srv/a/b" })).toBe("doubt");
    expect(verdictsOf("path=/srv/**", { path: "/srv/a/b" })).toBe("yes");
    expect(verdictsOf("path=/srv/*/public/**", { path: "/srv/a/b/public/c" })).toBe("doubt");
    expect(verdictsOf("path=**/.env", { path: "conf/.env" })).toBe("yes");
    expect(verdictsOf("path=*.env", { path: "/srv/conf/.env" })).toBe("doubt");
    expect(verdictsOf("path=*.env", { path: "/home/ann/work/conf/.env" })).toBe("doubt");
    expect(verdictsOf("path=.env", { path: "conf/../.env" })).toBe("yes");
    expect(verdictsOf("path=.env", { path: "link" }, { links: { "/home/ann/work/link": "/home/ann/work/.env" } })).toBe(
      "doubt",
    );
  });

  it("without the server's folder a relative path, and without its home ~, are in doubt", () => {
    const place = { home: undefined, bases: [] };
    expect(verdictsOf("path=/etc/**", { path: "a" }, { place })).toBe("doubt");
    expect(verdictsOf("path=~/a/**", { path: "/b" }, { place })).toBe("doubt");
    expect(verdictsOf("path=/etc/**", { path: "~/a" }, { place })).toBe("doubt");
    expect(verdictsOf("path=/etc/**", { path: "/srv/a" }, { place })).toBe("no");
  });

  it.each([
    "/srv/a:/etc/passwd",
    "/srv/a,/etc/passwd",
    "/srv/a /etc/passwd",
    "/srv/a; cat /etc/passwd",
    '/srv/a" "/etc/passwd',
    "/srv/a ~/.ssh/id",
    "/srv/a ../../../etc/passwd",
    "--file=/etc/passwd",
  ])("several in one text: %j", (path) => {
    expect(decide({ deny: ["srv__do(path!=/srv/**)"] }, { path })).toBe("deny");
    expect(decide({ allow: ["srv__do(path=/srv/**)"] }, { path })).toBe("deny");
    if (path.includes("passwd") && !path.includes("..")) expect(verdictsOf("path=/etc/passwd", { path })).toBe("doubt");
  });

  it("a name with blanks and commas is one file", () => {
    expect(verdictsOf("path=/srv/**", { path: "/srv/My Documents/a, b.txt" })).toBe("yes");
    expect(verdictsOf("path=/srv/**", { path: "/etc/My Documents/a, b.txt" })).toBe("no");
    expect(verdictsOf("path=/srv/**", { path: "/srv/a /srv/b" })).toBe("yes");
  });

  it("drives and shares of Windows", () => {
    for (const path of ["C:\\Work\\a", "c:/Work/a", "/C:/Work/a", "file:///C:/Work/a", "C:\\x\\..\\Work\\a"]) {
      expect([path, verdictsOf("path=C:\\Work\\**", { path })]).toEqual([path, "yes"]);
    }
    expect(verdictsOf("path=C:\\Work\\**", { path: "c:\\WORK\\a. " })).toBe("doubt");
    expect(verdictsOf("path=C:\\Work\\**", { path: "D:\\Work\\a" })).toBe("no");
  });
});

it("[shape-01e] a path with many blanks or dots in a name costs as much as any other", { retry: 2 }, () => {
  const rules = { deny: ["srv__do(path=~/private/**)"] };
  const cost = (filler: string): number => {
    const start = process.cpuUsage();
    for (let index = 0; index < 20; index += 1) decide(rules, { path: `/a/${filler.repeat(7000)}b${index}/c. /d` });
    const { user, system } = process.cpuUsage(start);
    // Below this it is noise.
    return Math.max(10_000, user + system);
  };
  expect(cost(" ") / cost("x")).toBeLessThan(10);
});

describe("[shape-01f] what an attacker writes for a URI, an address, a branch or a command", () => {
  it.each([
    "https://evil.example/a",
    "HTTPS://EVIL.example/a",
    "https://evil.example./a",
    "https://user:pass@evil.example/a",
    "https://evil.example:443/a",
    "https:\\\\evil.example\\a",
    "https:/evil.example/a",
    "https:evil.example/a",
    " https://evil.example/a",
    "https://e%76il.example/a",
    "https://ｅvil.example/a",
    "https://evil.example",
    "evil.example/a",
    "//evil.example/a",
    "https://evil.example/%2e%2e/a",
    "https://evil.example/a\0",
    "ht\ntps://evil.example/a",
  ])("%j is denied with https://evil.example/**", (url) => {
    expect(decide({ deny: ["srv__do(url=https://evil.example/**)"] }, { url })).toBe("deny");
  });

  it.each(
    [
      "https://evil.example/x.acme.com/",
      "https://evil.example#.acme.com/",
      "https://evil.example?.acme.com/",
      "https://api.acme.com@evil.example/",
      "https://evil.example\\.acme.com/",
      "https://api.acme.com.evil.example/",
      "https://evil.example/https://api.acme.com/",
      "https://api.acme.com:8443@evil.example/",
      "http://api.acme.com/",
      "api.acme.com/",
      "https://api.acme.com/v1/../../../evil",
      "https://api.acme.com%2eevil.example/",
      "https://api.acme.com\u2024evil.example/",
    ].filter((url) => url !== "https://api.acme.com/v1/../../../evil"),
  )("%j is not what https://*.acme.com/** allows", (url) => {
    expect(decide({ allow: ["srv__do(url=https://*.acme.com/**)"] }, { url })).toBe("deny");
    expect(decide({ ask: ["srv__do(url!=https://*.acme.com/**)"] }, { url })).toBe("ask");
  });

  it("what is meant passes", () => {
    expect(verdictsOf("url=https://*.acme.com/**", { url: "https://api.acme.com/v1/x?y=1" })).toBe("yes");
    expect(verdictsOf("url=https://api.acme.com/v1/**", { url: "https://api.acme.com/v1/../v2" })).toBe("doubt");
    expect(verdictsOf("url=https://evil.example/**", { url: "https://acme.com/evil.example" })).toBe("no");
  });

  it.each([
    "https://evil.com;.acme.com/x",
    "https://evil.com&.acme.com/x",
    "https://evil.com .acme.com/x",
    "https://evil.com%3f.acme.com/x",
    "https://evil.com%5c.acme.com/x",
    "https://evil.com:80%40x.acme.com/",
    "https://evil.com@.acme.com/x",
    "https://evil.com／.acme.com/x",
    "https://evil.com℀.acme.com/x",
    "https://api.acme.com/x https://evil.com/",
    "https://api.acme.com/x,https://evil.com/",
    'https://api.acme.com/x"|http://evil.com/',
  ])("%j is not beyond doubt at acme.com", (url) => {
    expect(verdictsOf("url=https://*.acme.com/**", { url })).toBe("doubt");
    expect(decide({ deny: ["srv__do(url!=https://*.acme.com/**)"] }, { url })).toBe("deny");
  });

  it.each([
    "http:127.0.0.1/x",
    "http:\\127.0.0.1/x",
    "https://acme.com/ http://127.0.0.1/x",
    "https://acme.com/,http://127.0.0.1/x",
    "see <http://127.0.0.1/x>",
  ])("%j is denied with http://127.0.0.1", (url) => {
    expect(verdictsOf("url=http://127.0.0.1/**", { url })).toBe("doubt");
  });

  it("a host with a port, and hosts in other scripts, are as they were", () => {
    expect(verdictsOf("url=https://*.acme.com:8443/**", { url: "https://a.acme.com:8443/x" })).toBe("yes");
    expect(verdictsOf("url=http://127.0.0.1:8080/**", { url: "127.0.0.1:8080/x" })).toBe("doubt");
    expect(verdictsOf("url=https://münchen.example/**", { url: "https://acme.com/x, y" })).toBe("no");
  });

  it.each(["git log;git x", "git log > git x", "git log | git x", "git log $git x", "git a && git b"])(
    "the command %j is more than one of git",
    (command) => {
      expect(verdictsOf("command=git *", { command })).toBe("doubt");
    },
  );

  it.each([
    "bob@acme.com, evil@x.com",
    "evil@x.com,bob@acme.com",
    "evil@x.com;bob@acme.com",
    "evil@x.com bob@acme.com",
    "evil@x.com\nbob@acme.com",
    '"evil@x.com" <bob@acme.com>, evil@x.com',
    "bob@acme.com.x.com",
    "bob@acme.com@x.com",
    "evil@x.com@acme.com",
    "evil%x.com@acme.com",
    "x.com!evil@acme.com",
    "evil@x.com%2cbob@acme.com",
    "evil@x.com\tbob@acme.com",
    "bob@ａcme.com",
    "bob",
    "bob@acme.com, evil",
    "bob@acme.com evil",
    "bob@acme.com, x.com!evil",
    "bob@acme.com, evil＠x.com",
    "=?utf-8?q?evil=40x.com=2c?= <bob@acme.com>",
    "x.com:evil@acme.com",
  ])("a mail to %j asks where only acme.com does not", (to) => {
    expect(decide({ ask: ["srv__do(to!=*@acme.com)"] }, { to })).toBe("ask");
    expect(decide({ allow: ["srv__do(to=*@acme.com)"] }, { to })).toBe("deny");
  });

  it.each(["bob@acme.com", "BOB@ACME.COM", "Bob <bob@acme.com>", "a@acme.com, b@acme.com"])(
    "a mail to %j does not",
    (to) => {
      expect(decide({ ask: ["srv__do(to!=*@acme.com)"] }, { to })).toBe("allow");
    },
  );

  it.each([
    "main",
    "MAIN",
    " main",
    "refs/heads/main",
    "heads/main",
    "HEAD:main",
    "+HEAD:refs/heads/main",
    "dev main",
    "main\n",
    "ma\u200bin",
    "ｍain",
    "%6dain",
    "dev/../main",
    ":main",
  ])("a push to %j is one to main", (branch) => {
    expect(decide({ deny: ["srv__do(branch=main)"] }, { branch })).toBe("deny");
    expect(decide({ deny: ["srv__do(branch!=feature/**)"] }, { branch })).toBe("deny");
    expect(decide({ allow: ["srv__do(branch=feature/**)"] }, { branch })).toBe("deny");
  });

  it.each([
    "feature/x:main",
    "feature/../main",
    "feature/x main;",
    "feature\\..\\main",
    "feature/%2e%2e/main",
    "feature/x;main",
    "feature/x\nmain",
  ])("%j is not a branch below feature", (branch) => {
    expect(decide({ allow: ["srv__do(branch=feature/**)"] }, { branch })).toBe("deny");
  });

  it.each([
    "git log; rm -rf /",
    "git log && rm x",
    "git log | sh",
    "git log $(rm x)",
    "git log `rm x`",
    "git log > x",
    "git log\nrm x",
  ])("the command %j is not what git * allows", (command) => {
    expect(decide({ allow: ["srv__do(command=git *)"] }, { command })).toBe("deny");
    expect(decide({ allow: ["srv__do(command=git *)"] }, { command: "git log -1" })).toBe("allow");
  });
});

describe("[shape-07b] properties of rules on arguments", () => {
  const value: fc.Arbitrary<unknown> = fc.oneof(
    fc.string(),
    fc.string({ unit: "binary" }),
    fc.constantFrom(
      "main",
      "/etc/passwd",
      "../x",
      "~/a",
      "%2e%2e/",
      "https://a.b/c",
      "file:///etc",
      "a@b.c",
      "",
      "*",
      "feature/x",
    ),
    fc
      .array(fc.constantFrom("..", "etc", "home", "ann", "work", ".", "", "%2e", "a*", "~", "\\", "link"))
      .map((parts) => parts.join("/")),
    fc.double(),
    fc.boolean(),
    fc.constant(null),
    fc.jsonValue(),
  );
  const pattern = fc.constantFrom(
    "main",
    "feature/*",
    "feature/**",
    "/etc/**",
    "~/work/**",
    "**/.env",
    "*",
    "a*",
    "https://*.b/**",
    "https://a.b/c",
    "*@b.c",
    "5",
    "true",
    "file:///etc/**",
    '"a*"',
    "./x",
    "C:/a/**",
  );
  const operator = fc.constantFrom("=", "!=");

  it("what an allow takes for sure a deny applies to, whatever the value; = and != never both let through", () => {
    fc.assert(
      fc.property(value, pattern, operator, fc.constantFrom("branch", "path", "url"), (given, text, op, name) => {
        const args = { [name]: given };
        verdictsOf(`${name}${op}${text}`, args);
        const isAllowed = (operatorOf: string): boolean =>
          decide({ allow: [`srv__do(${name}${operatorOf}${text})`] }, args) === "allow";
        expect(isAllowed("=") && isAllowed("!=")).toBe(false);
        const isDenied = (operatorOf: string): boolean =>
          decide({ deny: [`srv__do(${name}${operatorOf}${text})`] }, args) === "deny";
        expect(isDenied("=") || isDenied("!=")).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it("no spelling of a denied file passes, nor does one become allowed", () => {
    const spell = fc.array(
      fc.constantFrom<(path: string) => string>(
        (path) => path.replace("/etc", "/etc/."),
        (path) => path.replace("/etc", "/x/../etc"),
        (path) => path.replace("/etc", "//etc"),
        (path) => path.replace("e", "%65"),
        (path) => path.replace(/%(?!25)/, "%25"),
        (path) => path.replace("etc", "ETC"),
        (path) => path.replaceAll("/", "\\"),
        (path) => (path.startsWith("/") ? `file://${path}` : path),
        (path) => ` ${path}`,
        (path) => path.replace("/etc", "/home/ann/work/../../../etc"),
        (path) => path.replace("t", "ｔ"),
        (path) => `${path}/`,
      ),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(spell, (steps) => {
        const path = steps.reduce((text, step) => step(text), "/etc/passwd");
        expect([path, decide({ deny: ["srv__do(path=/etc/**)"] }, { path })]).toEqual([path, "deny"]);
        expect([path, decide({ allow: ["srv__do(path=~/work/**)"] }, { path })]).toEqual([path, "deny"]);
      }),
      { numRuns: 2000 },
    );
  });

  it("every file that a path leads to by the system's rules decides", () => {
    const segment = fc.constantFrom("a", "b", "..", ".", "link", "up", "");
    const links: Record<string, string> = {};
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 6 }), (segments) => {
        const path = segments.join("/");
        const real = followed(path);
        const all = new Proxy(links, {
          has: () => true,
          getOwnPropertyDescriptor: (_links, key) => ({
            configurable: true,
            enumerable: true,
            value: followed(String(key)),
          }),
          get: (_links, key) => followed(String(key)),
        });
        if (path.startsWith("~") || path === "") return;
        const isInside = real === "/home/ann/work" || real.startsWith("/home/ann/work/");
        if (!isInside)
          expect([path, real, decide({ allow: ["srv__do(path=~/work/**)"] }, { path }, { links: all })]).toEqual([
            path,
            real,
            "deny",
          ]);
        if (real.startsWith("/etc"))
          expect([path, decide({ deny: ["srv__do(path=/etc/**)"] }, { path }, { links: all })]).toEqual([path, "deny"]);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("[shape-07c] many rules", () => {
  const texts = [
    ...[
      "main",
      "Main",
      "release-1",
      "release-1/x",
      "refs/heads/main",
      "ｍain",
      "ma\u200bin",
      "%6dain",
      "main,dev",
      "a\u0301",
      "á",
    ],
    ...[
      "/etc/passwd",
      "/etc",
      "/ETC/Passwd",
      "/etc/../etc/passwd",
      "~/work/x",
      "~",
      "src/a.ts",
      "./src/a.ts",
      "/srv/link/a",
    ],
    ...[
      "/home/ann/work/src/a.ts",
      "file:///etc/passwd",
      "C:\\a\\b",
      "x.env",
      ".env",
      "/a/.env",
      "/etc./x",
      "a\u200d\u0301",
    ],
    ...[
      "https://a.b/c",
      "HTTPS://A.b/c/",
      "https://a.b/",
      "https://a.b",
      "a.b/c",
      "https://a.b/%63",
      "https://a.b/c/d?x#y",
    ],
    ...[
      "ann@b.c",
      "Ann <ann@b.c>",
      "ann@b.c, x@evil.com",
      "5",
      "5.0",
      " 5",
      "true",
      "",
      " ",
      "*",
      "＊",
      "a*",
      "x".repeat(70_000),
    ],
    // Several addresses or paths in one text, and what has a second reading.
    ...[
      "https://x.y/ https://a.b/c",
      "https://x.y/,https://a.b/c",
      "https://x.y/ a.b/c",
      "<https://x.y/>;<https://a.b/c>",
      "a.b:80/c",
      "https:80/c",
      "http:127.0.0.1/x",
      "http:2130706433/x",
      "https://x.y@a.b/c",
      "https://evil.com\\.b/c",
    ],
    ...[
      "/tmp/a:/etc/passwd",
      "/tmp/a /etc/passwd",
      "/tmp/a,/etc/passwd",
      "/etc/passwd,/etc/shadow",
      "/tmp/a ~/work/x",
      "/tmp/a;file:///etc/passwd",
      "--file=/etc/passwd",
      "@/etc/passwd",
      "@./src/a.ts",
      "cat /etc/passwd",
      "cat a; rm /etc/passwd",
      "/a ".repeat(60),
      "/proc/self/cwd/x",
      "/tmp/a:/proc/self/cwd/x",
      "/dev/fd/3",
    ],
    ...[
      "ann@b.c,bob@b.c",
      "ann@b.c;Bob <bob@x.com>",
      "Ann, <ann@b.c>",
      "ann@b.c bob@b.c",
      "ann%x.com@b.c",
      "=?utf-8?q?ann?=@b.c",
    ],
  ];
  const text = fc.constantFrom(...texts);
  const value: fc.Arbitrary<unknown> = fc.oneof(
    { weight: 4, arbitrary: text },
    fc.string({
      unit: fc.constantFrom("a", "/", ".", "%2e", "~", "main", "etc", "*", "A", "@b.c", "\u0301", "\u200d", " "),
    }),
    fc.constantFrom(undefined, null, 5, 0.5, true, ["main"], { a: 1 }),
  );
  const written = text.filter((each) => each.length < 100);
  const patterns = [
    ...[
      "main",
      "release-*",
      "release-?",
      "release-1/*",
      "*",
      "*in",
      "*@b.c",
      "*@*.com",
      "?ain",
      "m*n",
      "/etc/**",
      "/etc/*",
    ],
    ...[
      "/etc/passwd",
      "/srv/link/**",
      "~/work/**",
      "~/**",
      "./src/**",
      "**/.env",
      "*.env",
      "src/*",
      "src/**/a.ts",
      "á",
      "＊*",
    ],
    ...[
      "https://a.b/**",
      "https://a.b/c",
      "https://a.b/**/c",
      "https://*.b/**",
      "*://a.b/*",
      "file:///etc/**",
      "C:/a/**",
      "5",
    ],
    ...["true", "a*", "á*", "https://a.b/a*", "https://*/**", "http://127.0.0.1/**", "https://a.b:80/**", "a.b:80/*"],
    ...["/proc/**", "/tmp/**", "/dev/fd/*", "cat *", "cat /etc/*", "*/passwd", "--file=*", "@*", "ann@*", "http:*"],
  ];
  const pattern = fc.oneof(
    fc.constantFrom(...patterns),
    written.map((each) => JSON.stringify(each)),
  );
  const name = fc.constantFrom("branch", "path", "url", "other");
  const condition = fc.oneof(
    { weight: 6, arbitrary: fc.tuple(name, pattern).map(([key, given]) => `${key}=${given}`) },
    fc.tuple(name, pattern).map(([key, given]) => `${key}!=${given}`),
    fc.tuple(name, pattern, pattern).map(([key, one, two]) => `${key} in (${one}, ${two})`),
    fc.tuple(name, pattern, name, pattern).map(([key, one, other, two]) => `${key}=${one}, ${other}=${two}`),
    name.map((key) => `${key}>3`),
    name.map((key) => `${key}[*]=main`),
    fc.constantFrom({ filler: "x" }, { filler: "y" }).map((call) => `*=${callHash(call)}`),
  );
  const conditions = fc.array(condition, { minLength: 3, maxLength: 12 });
  const key = fc.oneof(
    { weight: 5, arbitrary: name },
    fc.constantFrom("Branch", "PATH", "_url", "b-ranch", "oth\u200ber", "ｐath"),
  );
  const args = fc.dictionary(key, value).map((given) => ({ ...given }));
  const circumstances = fc.constantFrom<Circumstances>(
    {},
    { links: { "/srv/link": "/etc", "/home/ann/work/src": "/etc" } },
    { links: { "/etc": null } },
    { links: { "/proc/self/cwd/x": null, "/dev/fd/3": null, "/tmp/a": "/etc/passwd" } },
    { links: { "/tmp": "/etc", "/proc": null } },
    { schema: { ...SCHEMA, properties: { ...SCHEMA.properties, Branch: { type: "string" } } } },
    { place: { bases: [] } },
    { place: { home: "/home/ann", bases: ["/srv", "/home/ann/work"] } },
    { reader: new ArgumentReader(PLACE) },
  );

  /** So that no list is too short for an index. They never hold. */
  const fillers = Array.from({ length: 8 }, (_, index) => `srv__do(filler=none${index}*)`);

  it("decide together as each of them by itself", () => {
    const came = new Map<string, number>();
    fc.assert(
      fc.property(conditions, args, circumstances, (all, given, where) => {
        const rules = all.map((each) => `srv__do(${each})`);
        for (const [list, verdict, of] of [
          ["deny", "deny", (entries: string[]) => entries],
          ["allow", "allow", (entries: string[]) => entries],
          ["deny", "allow", (entries: string[]) => ["srv__do", ...entries.map((entry) => `!${entry}`)]],
          ["allow", "deny", (entries: string[]) => ["srv__do", ...entries.map((entry) => `!${entry}`)]],
        ] as const) {
          const hold = (entries: string[]): boolean =>
            decide({ [list]: of(entries) }, { ...given, filler: "x" }, where) === verdict;
          const [holding, silent] = [rules.filter((rule) => hold([rule])), rules.filter((rule) => !hold([rule]))];
          expect([list, verdict, hold([...fillers, ...silent])]).toEqual([list, verdict, false]);
          for (const rule of holding) {
            expect([list, verdict, rule, hold([...fillers, ...silent, rule])]).toEqual([list, verdict, rule, true]);
            came.set(`${list} ${verdict}`, (came.get(`${list} ${verdict}`) ?? 0) + 1);
          }
        }
      }),
      { numRuns: 400 },
    );
    for (const [, times] of came) expect(times).toBeGreaterThan(50);
    expect(came.size).toBe(4);
  });

  it.each(["branch", "path", "PATH"])("decide as if there were no others, with each text as %s", (given) => {
    const quoted = texts.filter((each) => each.length < 100).map((each) => JSON.stringify(each));
    const links = { "/proc/self/cwd/x": null, "/dev/fd/3": null };
    let denied = 0;
    for (const condition of [...patterns, ...quoted].map((each) => `srv__do(${given.toLowerCase()}=${each})`)) {
      const [alone, together] = [decider({ deny: [condition] }), decider({ deny: [...fillers, condition] })];
      for (const each of texts) {
        const call = { [given]: each, filler: "x", ...(given === "PATH" && { path: "/tmp/a" }) };
        const verdict = alone(call, { links });
        if (verdict === "deny") denied += 1;
        if (together(call, { links }) !== verdict) expect([condition, each, "together"]).toBe(verdict);
      }
    }
    expect(denied).toBeGreaterThan(500);
  });

  it("the first in the order of the list is the one that is named", () => {
    const deny = Array.from({ length: 20 }, (_, index) => `srv__do(branch=b${index}*)`);
    const policy = new Policy({
      hub: { deny: [...deny, "srv__do(branch=b*)", "srv__do(branch=b1)"] },
      where: "toolcrib.json",
      servers: new Map(),
    });
    const subject = { kind: "tool", publicName: "srv__do", originName: "do", server: "srv" } as const;
    const decided = (branch: string) =>
      policy.prepare(subject, { owner: true }).decide({
        arguments: { branch },
        schema: SCHEMA,
        reader: new ArgumentReader(PLACE),
        tainted: false,
        client: undefined,
        name: "srv__do",
        now: 0,
        countCalls: () => 0,
      }).rule?.pattern;
    expect(decided("b17x")).toBe("srv__do(branch=b1*)");
    expect(decided("b1")).toBe("srv__do(branch=b1*)");
    expect(decided("bx")).toBe("srv__do(branch=b*)");
    expect(decided("main")).toBeUndefined();
  });
});

/** As the system does it, where every `link` leads to /etc and every `up` to the folder above. */
function followed(path: string): string {
  let current: string[] = path.startsWith("/") ? [] : ["home", "ann", "work"];
  for (const segment of path.split("/")) {
    if (segment === ".." || segment === "up") current = current.slice(0, -1);
    else if (segment === "link") current = ["etc"];
    else if (segment !== "" && segment !== ".") current = [...current, segment];
  }
  return `/${current.join("/")}`;
}

describe("[shape-01b] an argument beside another that some servers take for it", () => {
  it.each(["Branch", "BRANCH", "bra_nch", " branch", "ｂranch"])("%j is in doubt", (twin) => {
    expect(verdictsOf("branch=main", { branch: "dev", [twin]: "main" })).toBe("doubt");
    expect(verdictsOf("branch=dev", { branch: "dev", [twin]: "main" })).toBe("doubt");
    expect(verdictsOf("issue.branch=dev", { issue: { branch: "dev", [twin]: "main" } })).toBe("doubt");
  });

  it("[sound-15a] is in doubt beside a __proto__", () => {
    const args = (text: string): JsonObject => JSON.parse(text) as JsonObject;
    const schema = { type: "object", properties: { other: { type: "string" }, branch: { default: "dev" } } };
    for (const text of ['{"__proto__": {"branch": "main"}}', '{"branch": "dev", "__proto__": {"branch": "main"}}']) {
      expect(verdictsOf("branch=main", args(text), { schema })).toBe("doubt");
      expect(verdictsOf("branch=dev", args(text), { schema })).toBe("doubt");
      expect(verdictsOf("issue.branch=dev", args(`{"issue": ${text}}`), { schema })).toBe("doubt");
    }
    expect(verdictsOf("branch=main", {}, { schema })).toBe("no");
  });

  it("is its own where the schema knows it", () => {
    const schema = { type: "object", properties: { branch: { type: "string" }, Branch: { type: "string" } } };
    expect(verdictsOf("branch=dev", { branch: "dev", Branch: "main" }, { schema })).toBe("yes");
  });
});

describe("[shape-04a] conditions", () => {
  const rules: (when: JsonObject) => ToolRules = (when) =>
    ToolRulesSchema.parse({ rules: [{ deny: "srv__do", when }] });
  it("apply to a tainted session, a client, hours, and calls above a number", () => {
    expect(decide(rules({ tainted: true }), {})).toBe("allow");
    expect(decide(rules({ tainted: true }), {}, { tainted: true })).toBe("deny");
    expect(decide(rules({ client: "Cur*" }), {})).toBe("deny");
    expect(decide(rules({ client: "claude*" }), {})).toBe("allow");
    expect(decide(rules({ client: "claude*" }), {}, { client: undefined })).toBe("deny");
    const at = (hour: number, minute = 0): Circumstances => ({ now: new Date(2026, 0, 1, hour, minute).getTime() });
    expect([21, 22, 23, 0, 5, 6].map((hour) => decide(rules({ hours: "22-06" }), {}, at(hour)))).toEqual([
      "allow",
      "deny",
      "deny",
      "deny",
      "deny",
      "allow",
    ]);
    expect(
      [
        [8, 29],
        [8, 30],
        [16, 59],
        [17, 0],
      ].map(([hour = 0, minute]) => decide(rules({ hours: "08:30-17:00" }), {}, at(hour, minute))),
    ).toEqual(["allow", "deny", "deny", "allow"]);
    const calls = { calls: { per: "1h", over: 5 } };
    expect(decide(rules(calls), {}, { countCalls: () => 4 })).toBe("allow");
    expect(decide(rules(calls), {}, { countCalls: () => 5 })).toBe("deny");
    expect(decide(rules({ tainted: true, ...calls }), {}, { countCalls: () => 5 })).toBe("allow");
  });

  it("go with conditions on arguments, and an allow with them is an entry of the allow list", () => {
    const rule = ToolRulesSchema.parse({ rules: [{ ask: "srv__do(branch=main)", when: { tainted: true } }] });
    expect(decide(rule, { branch: "main" }, { tainted: true })).toBe("ask");
    expect(decide(rule, { branch: "dev" }, { tainted: true })).toBe("allow");
    expect(decide(rule, { branch: "main" })).toBe("allow");
    const allow = ToolRulesSchema.parse({ rules: [{ allow: "srv__do", when: { hours: "08-17" } }] });
    expect(decide(allow, {})).toBe("allow");
    expect(decide(allow, {}, { now: new Date(2026, 0, 1, 20).getTime() })).toBe("deny");
  });

  it("are a closed set, each of which is checked", () => {
    for (const when of [
      {},
      { tained: true },
      { hours: "25-26" },
      { hours: "8-8" },
      { calls: { per: "1y", over: 1 } },
      { calls: { per: "1h" } },
      { client: "" },
    ]) {
      expect([when, ToolRulesSchema.safeParse({ rules: [{ deny: "a", when }] }).success]).toEqual([when, false]);
    }
    expect(ToolRulesSchema.safeParse({ rules: [{ deny: "a", ask: "b", when: { tainted: true } }] }).success).toBe(
      false,
    );
    expect(ToolRulesSchema.safeParse({ rules: [{ when: { tainted: true } }] }).success).toBe(false);
  });
});
