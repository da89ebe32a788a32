import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maskTokens } from "../../src/secrets/mask.ts";

// Put together here, so that no scanner takes this file for a leak.
const letters = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7d";
const join = (...parts: string[]): string => parts.join("");

describe("[guard-10a] what looks like a token is masked", () => {
  it.each([
    join("ghp", "_", letters),
    join("gho", "_", letters),
    join("github", "_pat_", letters, "_", letters),
    join("glpat", "-", letters),
    join("sk", "-", letters),
    join("sk", "-ant-api03-", letters),
    join("sk", "_live_", letters),
    join("xox", "b-123456789012-", letters),
    join("xox", "p-", letters),
    join("AKIA", "IOSFODNN7EXAMPLE"),
    join("AI", "za", letters.slice(0, 35)),
    join("ya29", ".", letters),
    join("hvs", ".", letters),
    join("npm", "_", letters),
    join("hf", "_", letters),
    join("eyJ", "hbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0.", letters),
    join("SG", ".", letters.slice(0, 22), ".", letters),
  ])("%s", (token) => {
    expect(maskTokens(`before ${token} after`)).toBe("before [redacted] after");
    expect(maskTokens(`{"t":"${token}"}`)).toBe('{"t":"[redacted]"}');
    expect(maskTokens(`https://h/?x=${token}&y=1`)).not.toContain(token.slice(6));
  });

  it.each([
    ["Authorization: Bearer abc123def456", "Authorization: Bearer [redacted]"],
    ["authorization: basic dXNlcjpwYXNz", "authorization: basic [redacted]"],
    ["https://ana:pw@host/x", "https://[redacted]@host/x"],
    ["postgres://u:p%40ss@db:5432/x?y", "postgres://[redacted]@db:5432/x?y"],
    ["https://h/mcp?api_key=abcd&page=2", "https://h/mcp?api_key=[redacted]&page=2"],
    ["GITHUB_TOKEN=abcdef NODE_ENV=test", "GITHUB_TOKEN=[redacted] NODE_ENV=test"],
    ['{"password":"hunter2!","user":"ana"}', '{"password":"[redacted]","user":"ana"}'],
    ['{"password": "hunter2!"}', '{"password": "[redacted]"}'],
    ["x-api-key: 0123456789abcdef", "x-api-key: [redacted]"],
    ["-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nnext", "[redacted]\nnext"],
    ["cut: -----BEGIN PRIVATE KEY-----\nMIIE", "cut: [redacted]"],
  ])("%j", (text, masked) => {
    expect(maskTokens(text)).toBe(masked);
    expect(maskTokens(maskTokens(text))).toBe(masked);
  });
});

describe("prose, paths and references are left alone", () => {
  it.each([
    "The server wants Bearer authentication.",
    "Basic authentication is not supported",
    "password: must have eight characters",
    "token=${TOKEN} and token=secret://env/TOKEN",
    "auth.token: secret://env/MISSING is not set",
    "Set TOKEN_URL=https://example.com/token, or key=./key.pem",
    "git clone ssh://git@github.com/a/b",
    "https://example.com:8080/a@b?c=d",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "task-risk-sketch-desk-mask-flask-whisk",
    "eyJust a word. Another",
    "550e8400-e29b-41d4-a716-446655440000",
    "Write key=value, key:=JSON or key=@file",
    "MAX_TOKENS=4096 tokens=12000",
  ])("%j", (text) => {
    expect(maskTokens(text)).toBe(text);
  });
});

describe("[guard-19c] any text at all", () => {
  it("is masked without a crash, and twice as once", () => {
    const pieces = [
      "ghp_",
      "eyJ",
      ".",
      "-----BEGIN PRIVATE KEY-----",
      "Bearer ",
      "://",
      "@",
      "token=",
      "a".repeat(30),
      ":",
      '"',
      " ",
    ];
    const text = fc
      .array(fc.oneof(fc.constantFrom(...pieces), fc.string({ unit: "binary", maxLength: 4 })))
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(text, (given) => maskTokens(maskTokens(given)) === maskTokens(given)),
      { numRuns: 1000, examples: [["Bearer ghp_token=ghp_"]] },
    );
  });

  it("is masked to its end, however long the token is", () => {
    for (const start of [
      join("ghp", "_"),
      "Bearer 1",
      "token=",
      join("-----BEGIN", " PRIVATE KEY-----\n"),
      "https://u:",
    ]) {
      const end = start.startsWith("https") ? "@h" : "";
      const long = start.startsWith("https") ? 500 : 10 * 1024 * 1024;
      expect(maskTokens(`${start}${"a".repeat(long)}${end}`).length).toBeLessThan(40);
    }
  });

  const fill = (piece: string): string => piece.repeat(Math.ceil((10 * 1024 * 1024) / piece.length));

  it.each([
    "eyJ",
    "eyJaaaaaaaa.",
    "ghp_",
    "sk-",
    "a",
    "a-",
    "Bearer ",
    "://",
    "a://b",
    "a://b:",
    "token=",
    "token: ",
    '"token":"',
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN ",
    "\ud83d",
    "xoxb-",
    "AKIA",
    "a=",
    "SG.aaaaaaaaaaaaaaaa.",
    "Bearer a1",
    "\n",
  ])("of 10 MB of %j is masked in linear time", { retry: 2 }, (piece) => {
    const text = fill(piece);
    const time = (part: string): number => {
      const start = performance.now();
      maskTokens(part);
      return performance.now() - start;
    };
    time(text.slice(0, 1000));
    const [tenth, whole] = [time(text.slice(0, text.length / 10)), time(text)];
    expect(whole).toBeLessThan(Math.max(tenth, 20) * 60);
  });
});
