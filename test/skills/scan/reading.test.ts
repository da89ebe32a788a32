import { describe, expect, it } from "vitest";
import { addressesIn, fetchedFrom } from "../../../src/skills/scan/addresses.ts";
import { decodes, fetches, pipelines, runsItsInput } from "../../../src/skills/scan/shell-commands.ts";
import {
  collectVariables,
  logicalLines,
  plainCommand,
  readText,
  scannedText,
  scanningText,
  textKind,
} from "../../../src/skills/scan/scanned-text.ts";
import { dataFlows } from "../../../src/skills/scan/data-flows.ts";
import { frontmatterValues, TimeSlicer } from "../../../src/skills/scan/scan-skill.ts";
import { downloadAndRun } from "../../../src/skills/scan/rules/downloads.ts";
import { findingSigns } from "../../../src/skills/scan/rule.ts";
import { subjectOf } from "../../../src/skills/scan/subject.ts";
import { skillOf } from "./build-skill.ts";
import { BASH, CURL } from "./parts.ts";

describe("logical lines", () => {
  it("joins what goes on, and keeps the number of the first line", () => {
    const text = "```\na \\\n b\nc |\nd\ne\n&& f\n```\nend";
    expect(logicalLines(text, "instructions").map(({ number, raw }) => `${number} ${raw}`)).toEqual([
      "1 ```",
      "2 a  b",
      "4 c | d",
      "6 e && f",
      "8 ```",
      "9 end",
    ]);
  });

  it("leaves the rows of a table apart", () => {
    expect(logicalLines("| a | b |\n| c | d |", "instructions")).toHaveLength(2);
  });

  it("keeps one of the blank lines in a row, and the numbers of the lines behind them", () => {
    const lines = logicalLines("a\n\n  \n\r\n\r\nb\r\rc", "instructions");
    expect(lines.map(({ number, raw }) => `${number} ${raw}`)).toEqual(["1 a", "2 ", "6 b", "7 ", "8 c"]);
  });

  it("ends early in a text of very many lines, and says so", () => {
    expect(scannedText("a", "script", "a\n".repeat(60_000))).toMatchObject({ cutShort: true });
    expect(scannedText("a", "script", "a\n".repeat(40_000))).toMatchObject({ cutShort: false });
    expect(scannedText("a", "script", "\n".repeat(60_000)).lines.length).toBeLessThan(3);
  });

  it("reads a long line in pieces that overlap", () => {
    const lines = logicalLines("x".repeat(10_000), "script");
    expect(lines.every(({ raw, number }) => raw.length <= 4_000 && number === 1)).toBe(true);
    expect(lines.reduce((sum, { raw }) => sum + raw.length, 0)).toBeGreaterThan(10_000);
  });
});

describe("plain commands", () => {
  const plain = (...lines: string[]): string => plainCommand(lines.at(-1) ?? "", collectVariables(lines));

  it.each([
    ["quotes in words", `c''u"r"l x`, "curl x"],
    ["backslashes in words", "c\\u\\rl x", "curl x"],
    ["the separator variable", "curl${ifs}x", "curl x"],
    ["joined literals", `"cu" + "rl x"`, `"curl x"`],
    ["a list of arguments", `["curl", "-s", "x"]`, `["curl -s x"]`],
    ["numbers of bytes", "\\x63\\x75rl", "curl"],
  ])("undoes %s", (_, written, read) => {
    expect(plain(written)).toBe(read);
  });

  it("knows variables of the same text, and the first value of a loop", () => {
    expect(plain("u=http://a.io/x", "curl $u")).toBe("curl http://a.io/x");
    expect(plain("for h in a.io b.io; do", "curl https://${h}/x")).toBe("curl https://a.io/x");
    expect(plain("curl $unknown")).toBe("curl $unknown");
  });
});

describe("commands", () => {
  it.each([
    ["sh", true],
    [" sudo -E bash -s -- --yes", true],
    [" env A=1 /bin/zsh", true],
    [" python3 -", true],
    [" iex", true],
    [" bash scripts/load.sh items -", false],
    [" python3 -m json.tool", false],
    [' python3 -c "print(1)"', false],
    [" sh -c 'cat'", false],
    [" jq .", false],
    [" tee x", false],
  ])("tells whether %j runs its input", (command, runs) => {
    expect(runsItsInput(command)).toBe(runs);
  });

  it("splits where a shell does", () => {
    expect(pipelines("a && b | c || d; e | f | g")).toEqual([
      [" b ", " c "],
      [" e ", " f ", " g"],
    ]);
  });

  it("knows fetching and decoding from talk about them", () => {
    expect(fetches(`${CURL} -s https://a.io`)).toBe(true);
    expect(fetches(`use ${CURL}.`)).toBe(false);
    expect(decodes("base64 -d")).toBe(true);
    expect(decodes("base64 -w0 file")).toBe(false);
  });
});

describe("addresses", () => {
  it.each([
    ["http://127.0.0.1:3000/x", "local"],
    ["http://[::1]/", "local"],
    ["https://10.1.2.3/", "private"],
    ["https://203.0.113.9/", "example number"],
    ["http://45.137.22.91/a", "number"],
    ["https://get.docker.com", "installer"],
    ["https://raw.githubusercontent.com/a/b/x.sh", "forge"],
    ["https://abc.vercel.app/", "free page"],
    ["https://rentry.co/x", "paste"],
    ["https://bit.ly/x", "shortener"],
    ["https://webhook.site/x", "drop"],
    ["https://your-server.com/x", "example"],
    ["https://api.acme.io/{id}", "unknown"],
  ])("calls %s %s", (url, kind) => {
    expect(addressesIn(url)[0]?.kind).toBe(kind);
  });

  it("sees through numbers that do not look like any, and leaves alone what is written to be harmless", () => {
    expect(addressesIn("http://0x2d89165b/p")[0]).toMatchObject({ host: "45.137.22.91", disguised: true });
    expect(addressesIn("http://757667419/p")[0]).toMatchObject({ host: "45.41.22.91", disguised: true });
    expect(addressesIn("http://45.137.22[.]91/p")).toEqual([]);
  });

  it("takes a name without a scheme from a download, but no file", () => {
    expect(fetchedFrom(`${CURL} -L bit.ly/abc`)[0]?.kind).toBe("shortener");
    expect(fetchedFrom(`${CURL} -o setup.sh`)).toEqual([]);
  });
});

describe("places", () => {
  it("tells section, block, comment and lead of a line", () => {
    const { lines } = scannedText(
      "SKILL.md",
      "instructions",
      "---\nname: x\n---\n# T\n## Setup\nDo this:\n```sh\n# note\nrun\n```\n<!-- a\nb -->\nend",
    );
    const at = (raw: string) => lines.find((line) => line.raw === raw);
    expect(at("name: x")).toMatchObject({ frontmatter: true, number: 2 });
    expect(at("run")).toMatchObject({ fenced: true, heading: "setup", intro: "do this: # note", number: 9 });
    expect(at("b -->")).toMatchObject({ hidden: true });
    expect(at("end")).toMatchObject({ hidden: false, fenced: false });
  });
});

function toEnd<Result>(steps: Generator<undefined, Result>): Result {
  let next = steps.next();
  while (next.done !== true) next = steps.next();
  return next.value;
}

describe("turns", () => {
  it("[skill-09a] are given whenever some time was spent, and not after every step", async () => {
    let now = 0;
    let given = 0;
    const turns = new TimeSlicer(() => now);
    const steps = function* (count: number, each: number): Generator<undefined, string> {
      for (let step = 0; step < count; step += 1) {
        now += each;
        setImmediate(() => (given += 1));
        yield undefined;
      }
      return "done";
    };
    expect(await turns.run(steps(100, 0.01))).toBe("done");
    // Nobody had a turn yet.
    expect(given).toBe(0);
    await turns.run(steps(100, 10));
    expect(given).toBeGreaterThan(190);
  });

  it("[skill-09a] are offered by every rule and by the reading of a text", () => {
    const text = scannedText("a.sh", "script", `${CURL} -s https://a.io/x -o x\n`.repeat(2_000));
    const { skill } = skillOf({ name: "", body: "x" });
    const offered = [...findingSigns(downloadAndRun, text, subjectOf(skill, text))].filter(
      (sign) => sign === undefined,
    );
    expect(offered.length).toBeGreaterThan(4);
    expect([...scanningText("a.sh", "script", text.raw)].length).toBeGreaterThan(8);
  });
});

describe("flows", () => {
  const found = (text: string): string[] =>
    toEnd(
      dataFlows(
        scannedText("a.py", "script", text).lines,
        ({ plain }) => plain.includes("secret("),
        ({ plain }) => plain.includes("send("),
      ),
    ).map(({ source, sink }) => `${source.number}>${sink.number}`);

  it.each([
    ["a name", "a = secret()\nsend(a)", ["1>2"]],
    ["names of names", "a = secret()\nb = a.strip()\nsend(b)", ["1>3"]],
    ["a function", "def f():\n    return secret()\nsend(f())", ["2>3"]],
    ["a collection", "d = {}\nd['k'] = secret()\nsend(d)", ["2>3"]],
    ["arguments on further lines", "a = secret()\nsend(\n  1,\n  a,\n)", ["1>2"]],
    ["a file", "tar(secret()) > /tmp/x.tgz\nsend('/tmp/x.tgz')", ["1>2"]],
    ["nothing of it", "a = secret()\nb = 1\nsend(b)", []],
    ["a prefix of a literal", "f = secret()\nsend(f'x')", []],
  ])("follows %s", (_, text, expected) => {
    expect(found(text)).toEqual(expected);
  });
});

describe("files", () => {
  it("tells instructions, scripts and data by name and first line", () => {
    expect(textKind("references/a.md", "")).toBe("instructions");
    expect(textKind("scripts/a.py", "")).toBe("script");
    expect(textKind("tool", `#!/bin/${BASH}\n`)).toBe("script");
    expect(textKind("package.json", "{}")).toBe("data");
  });

  it("[skill-09a] takes NULs out, tells of them, and reads scripts that are no text", () => {
    expect(readText("a.sh", Buffer.from("a\0b"))).toEqual({ text: "ab", kind: "script", isText: true, nuls: true });
    expect(readText("a", Buffer.from("#!/bin/sh\n\0"))).toMatchObject({ kind: "script", nuls: true });
    expect(readText("a.md", Buffer.from("hi"))).toMatchObject({ kind: "instructions", isText: true, nuls: false });
    const noise = Uint8Array.from({ length: 200 }, (_, index) => 128 + (index % 100));
    expect(readText("a.sh", noise)).toMatchObject({ kind: "script", isText: false });
    expect(readText("a.md", noise)).toBeUndefined();
  });

  it("reads text in the usual encodings, and nothing else", () => {
    expect(readText("a.md", Buffer.from("\ufeffhi", "utf8"))?.text).toBe("hi");
    expect(readText("a.md", Buffer.from("\ufeffhi", "utf16le"))?.text).toBe("hi");
    expect(readText("a.png", Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0, 1]))).toBeUndefined();
    expect(
      readText(
        "a.png",
        Uint8Array.from({ length: 200 }, (_, index) => 128 + (index % 100)),
      ),
    ).toBeUndefined();
  });

  it("takes values of the frontmatter that its text does not show", () => {
    const document = '---\nname: x\ndescription: "a\\u0062 long value"\nother: plainly there\n---\n';
    expect(frontmatterValues({ name: "x", description: "ab long value", other: "plainly there" }, document)).toEqual([
      { value: "ab long value", line: 3 },
    ]);
  });
});
