import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { ToolcribError } from "../../src/model/errors.ts";
import { findReferences, holdsReference, resolveReferences } from "../../src/secrets/references.ts";

const env = { TOKEN: "t0k", EMPTY: "", HOST: "h", NESTED: "${TOKEN} secret://env/TOKEN" };

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
    ["${input:x}", "${input:x} is no valid reference"],
    ["${1A}", "${1A} is no valid reference"],
    ["${}", "${} is no valid reference"],
    ["a ${TOKEN", "${TOKEN is not closed with }"],
    ["${A:-${B}}", "${A:-${B} holds a reference in its default"],
    ["${A:-secret://env/B}", "${A:-secret://env/B} holds a reference in its default"],
    ["secret://vault/kv/data#token x", 'secret://vault/kv/data#token names the secret provider "vault", which is not built in this version'],
    ["secret://aws/name", 'secret://aws/name names the secret provider "aws", which is not built in this version'],
    ["secret://", 'secret:// names the secret provider "", which is not built in this version'],
    ["secret://env/", "secret://env/ names no variable"],
    ["secret://env/9A", "secret://env/9A names no variable"],
  ])("[spine-06b] refuses %j and names it", async (text, message) => {
    expect(await messageOf(text)).toBe(message);
  });

  it("never passes a reference on: every text resolves without one, or fails", async () => {
    const pieces = fc.constantFrom("${", "}", "$", "secret://", "env/", "TOKEN", ":-", "vault/", "x", "$${", "MISSING", " ");
    await fc.assert(
      fc.asyncProperty(fc.array(pieces, { maxLength: 12 }), async (parts) => {
        const text = parts.join("");
        const plain = { TOKEN: "t" };
        try {
          const { value } = await resolveReferences(text, plain);
          expect(holdsReference(value) && !text.includes("$${")).toBe(false);
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
  expect(findReferences("a ${A} secret://env/B").map(({ name }) => name)).toEqual(["A", "B"]);
  expect(findReferences("${A} ${b")).toEqual([]);
  expect(holdsReference("${b")).toBe(true);
  expect(holdsReference("$${b} $c")).toBe(false);
});
