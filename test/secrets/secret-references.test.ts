import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { ToolcribError } from "../../src/model/errors.ts";
import { findReferences, hasReference, parseReferences, writeReference } from "../../src/secrets/secret-references.ts";
import { type Resolved, Secrets } from "../../src/secrets/secrets.ts";

const env = { TOKEN: "t0k", EMPTY: "", HOST: "h", NESTED: "${TOKEN} secret://env/TOKEN" };

function resolveReferences(text: string, given: NodeJS.ProcessEnv): Promise<Resolved> {
  return new Secrets({ env: given }).resolve(text);
}

async function messageOf(text: string): Promise<string> {
  try {
    await resolveReferences(text, env);
  } catch (error) {
    expect(error).toBeInstanceOf(ToolcribError);
    return (error as ToolcribError).message;
  }
  throw new Error(`${text} was resolved`);
}

describe("references that resolve", () => {
  it.each([
    ["plain", "plain"],
    ["", ""],
    ["${TOKEN}", "t0k"],
    ["Bearer ${TOKEN}", "Bearer t0k"],
    ["https://${HOST}/a?b=${TOKEN}#c", "https://h/a?b=t0k#c"],
    ["${TOKEN}${HOST}", "t0kh"],
    ["${MISSING:-d}", "d"],
    ["${EMPTY:-d}", "d"],
    ["${TOKEN:-d}", "t0k"],
    ["${MISSING:-}", ""],
    ["${MISSING:-a:-b c}", "a:-b c"],
    ["${EMPTY}", ""],
    ["secret://env/TOKEN", "t0k"],
    ["x secret://env/TOKEN, y", "x t0k, y"],
    ["secret://env/TOKEN-1", "t0k-1"],
    ["SECRET://env/TOKEN", "t0k"],
    ["${secret://env/TOKEN}x", "t0kx"],
    ["${SECRET://env/TOKEN}", "t0k"],
    ["https://u:${secret://env/TOKEN}@h/secret://env/TOKEN/x", "https://u:t0k@h/t0k/x"],
    ["$${TOKEN}", "${TOKEN}"],
    ["a $${ b ${TOKEN}", "a ${ b t0k"],
    ["$TOKEN $ { } $5", "$TOKEN $ { } $5"],
  ])("[spine-06a] resolves %j to %j", async (text, value) => {
    expect((await resolveReferences(text, env)).value).toBe(value);
  });

  it("reads what a reference gives as plain text", async () => {
    expect((await resolveReferences("${NESTED}", env)).value).toBe(env.NESTED);
  });

  it("tells which values were looked up, and not the defaults of the file", async () => {
    const { looked } = await resolveReferences("${TOKEN} ${MISSING:-d} secret://env/HOST", env);
    expect(looked.map(({ value }) => value)).toEqual(["t0k", "h"]);
  });
});

describe("references that fail", () => {
  it.each([
    ["Bearer ${MISSING}", "${MISSING} is not set"],
    ["secret://env/MISSING", "secret://env/MISSING is not set"],
    ["secret://env/EMPTY", "secret://env/EMPTY is empty"],
    ["${input:x}", "${input:x} is not a valid reference"],
    ["${1A}", "${1A} is not a valid reference"],
    ["${}", "${} is not a valid reference"],
    ["a ${TOKEN", "${TOKEN is not closed with }"],
    ["${A:-${B}}", "${A:-${B} has a reference in its default"],
    ["${A:-secret://env/B}", "${A:-secret://env/B} has a reference in its default"],
    [
      "secret://nowhere/kv/data#token x",
      'secret://nowhere/kv/data#token names the secret provider "nowhere", which does not exist',
    ],
    ["${secret://nowhere/x y}", '${secret://nowhere/x y} names the secret provider "nowhere", which does not exist'],
    ["secret://toString/x", 'secret://toString/x names the secret provider "toString", which does not exist'],
    ["secret://", 'secret:// names the secret provider "", which does not exist'],
    ["${secret://}", '${secret://} names the secret provider "", which does not exist'],
    ["${secret://env/TOKEN:-x}", "${secret://env/TOKEN:-x} has a default, which a secret cannot have"],
    ["secret://vault/kv", "secret://vault/kv is not a complete reference"],
    ["secret://vault/kv/", "secret://vault/kv/ is not a complete reference"],
    ["secret://vault/kv/../sys", "secret://vault/kv/../sys is not a complete reference"],
    ["secret://vault/kv/a#", "secret://vault/kv/a# is not a complete reference"],
    ["secret://aws/", "secret://aws/ is not a complete reference"],
    ["secret://aws/-x", "secret://aws/-x is not a complete reference"],
    ["secret://gcp/a/b/c", "secret://gcp/a/b/c is not a complete reference"],
    ["secret://gcp/a#-1", "secret://gcp/a#-1 is not a complete reference"],
    ["secret://keychain/service", "secret://keychain/service is not a complete reference"],
    ["secret://exec/", "secret://exec/ is not a complete reference"],
    ["secret://exec/op/--help", "secret://exec/op/--help is not a complete reference"],
    ["secret://user/../x", "secret://user/ is not a complete reference"],
    ["secret://env/", "secret://env/ is not a complete reference"],
    ["secret://env/9A", "secret://env/9A is not a complete reference"],
  ])("[spine-06b] refuses %j and names it", async (text, message) => {
    expect(await messageOf(text)).toBe(message);
  });

  it("never passes a reference on: every text resolves without one, or fails", async () => {
    const pieces = fc.constantFrom(
      "${",
      "}",
      "$",
      "secret://",
      "env/",
      "TOKEN",
      ":-",
      "vault/",
      "x",
      "$${",
      "MISSING",
      " ",
    );
    await fc.assert(
      fc.asyncProperty(fc.array(pieces, { maxLength: 12 }), async (parts) => {
        const text = parts.join("");
        const plain = { TOKEN: "t" };
        try {
          const { value } = await resolveReferences(text, plain);
          expect(hasReference(value) && !text.includes("$${")).toBe(false);
        } catch (error) {
          expect(error).toBeInstanceOf(ToolcribError);
        }
      }),
    );
  });

  it("reads a long text in one pass", async () => {
    const text = "${TOKEN} secret://env/TOKEN ${M:-d} $${ ".repeat(20_000);
    expect((await resolveReferences(text, env)).value.length).toBeGreaterThan(200_000);
    expect(await messageOf("${".repeat(100_000))).toContain("is not closed");
  });
});

it("finds references without resolving them, and none in a broken text", () => {
  expect(findReferences("a ${A} secret://env/B").map(({ text }) => text)).toEqual(["${A}", "secret://env/B"]);
  expect(findReferences("${A} ${b")).toEqual([]);
  expect(hasReference("${b")).toBe(true);
  expect(hasReference("$${b} $c")).toBe(false);
});

describe("[guard-07a] the form of each provider", () => {
  it.each([
    ["secret://file/a/b.txt, c", { provider: "file", path: "a/b.txt", text: "secret://file/a/b.txt" }],
    ["secret://file//etc/x#y z", { provider: "file", path: "/etc/x#y" }],
    ["${secret://file/My Keys/a (1).txt}", { provider: "file", path: "My Keys/a (1).txt" }],
    ["secret://vault/kv/app/db#pass'", { provider: "vault", path: "kv/app/db", field: "pass" }],
    ["secret://vault/kv/app", { provider: "vault", path: "kv/app" }],
    ["secret://aws/prod/db@1#user&x=1", { provider: "aws", path: "prod/db@1", field: "user" }],
    [
      "secret://aws/arn:aws:secretsmanager:eu-west-1:1:secret:a-Bc",
      { provider: "aws", path: "arn:aws:secretsmanager:eu-west-1:1:secret:a-Bc" },
    ],
    ["secret://gcp/name", { provider: "gcp", path: "name" }],
    ["secret://gcp/my-project/name#7)", { provider: "gcp", path: "my-project/name", field: "7" }],
    ["secret://keychain/https://github.com/ana", { provider: "keychain", path: "https://github.com/ana" }],
    ["secret://exec/op/op://vault/item/field?x", { provider: "exec", path: "op/op://vault/item/field" }],
    ["secret://user/TOKEN/x", { provider: "user", path: "TOKEN", text: "secret://user/TOKEN" }],
  ])("reads %j", (text, expected) => {
    const [reference] = findReferences(text);
    // Undefined where none is expected.
    expect(reference).toMatchObject({ kind: "secret", field: undefined, ...expected });
  });

  it("writes a reference so that it is read back, with braces only where they are needed", () => {
    expect(writeReference("file", "~/.toolcrib/secrets/A")).toBe("secret://file/~/.toolcrib/secrets/A");
    expect(writeReference("file", "/a b/c")).toBe("${secret://file//a b/c}");
    expect(findReferences(writeReference("file", "/a b/c"))).toMatchObject([{ path: "/a b/c" }]);
  });
});

describe("[guard-19c] any text at all", () => {
  const lists = [
    "$",
    "{",
    "}",
    "secret://",
    "${secret://",
    "env/",
    "vault/",
    "aws/",
    "gcp/",
    "keychain/",
    "exec/",
    "file/",
    "user/",
    "#",
    "/",
    "..",
    ":-",
    "A",
  ];
  const anything = fc.oneof(
    fc.string({ unit: "binary" }),
    fc
      .array(fc.oneof(fc.constantFrom(...lists), fc.string({ unit: "binary", maxLength: 3 })))
      .map((parts) => parts.join("")),
  );

  it("is parsed into parts that give the text back, or refused with a short message", () => {
    fc.assert(
      fc.property(anything, (text) => {
        try {
          const parts = parseReferences(text);
          const back = parts
            .map((part) => (typeof part === "string" ? part.replaceAll("${", "$${") : part.text))
            .join("");
          expect(back.replaceAll("$${", "${")).toBe(text.replaceAll("$${", "${"));
        } catch (error) {
          expect(error).toBeInstanceOf(ToolcribError);
          expect((error as ToolcribError).message.length).toBeLessThan(500);
        }
      }),
      { numRuns: 2000 },
    );
  });

  const MEGABYTES = 10 * 1024 * 1024;
  const fill = (piece: string): string => piece.repeat(Math.ceil(MEGABYTES / piece.length));

  it.each([
    ["nothing special", fill("lorem ipsum ")],
    ["dollars", fill("$")],
    ["openings", fill("${")],
    ["escaped openings", fill("$${")],
    ["closed nothings", fill("${}")],
    ["variables", fill("${A:-b}")],
    ["schemes", fill("secret://")],
    ["good references", fill("secret://env/A ")],
    ["one endless name", `secret://env/${fill("A")}`],
    ["one endless path", `secret://vault/kv/${fill("a/")}`],
    ["one endless reference in braces", `\${secret://keychain/${fill("a/-")}}`],
    ["emoji", fill("😀${A}")],
    ["lone surrogates", fill("\ud83d")],
  ])("of 10 MB is read in linear time: %s", (_, text) => {
    const time = (part: string): number => {
      const start = performance.now();
      hasReference(part);
      findReferences(part);
      return performance.now() - start;
    };
    const part = text.slice(0, text.length / 40);
    time(part);
    // Forty times the text may cost forty times as much, not 1,600 times. Collections of garbage and other programs cost the whole
    // more than the part, so the bound is far from both, and the best of up to three counts.
    const ratio = (): number => time(text) / Math.max(time(part), 5);
    expect([1, 2, 3].some(() => ratio() < 400)).toBe(true);
  });
});
