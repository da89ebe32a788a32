import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Redactor } from "../../src/secrets/redactor.ts";

function redactorOf(...values: string[]): Redactor {
  const redactor = new Redactor();
  for (const value of values) redactor.addCredential(value);
  return redactor;
}

describe("[guard-10a] known values", () => {
  const secret = 'p@ss w/ord+"1"ä';
  const base64 = Buffer.from(secret).toString("base64");
  const forms = {
    "as it is": secret,
    "in a URL": encodeURIComponent(secret),
    "in a URL with lower-case codes": encodeURIComponent(secret).toLowerCase(),
    "in a form": new URLSearchParams({ "": secret }).toString().slice(1),
    "as encodeURI writes it": encodeURI(secret),
    "in JSON": JSON.stringify(secret).slice(1, -1),
    "in JSON of other languages": JSON.stringify(secret).slice(1, -1).replace("ä", "\\u00e4"),
    "in JSON inside JSON": JSON.stringify(JSON.stringify(secret).slice(1, -1)).slice(1, -1),
    "in base64": base64,
    "in base64 without padding": base64.replace(/=+$/, ""),
    "in base64 for URLs": Buffer.from(secret).toString("base64url"),
    "in hexadecimal": Buffer.from(secret).toString("hex"),
  };

  it.each(Object.entries(forms))("are masked %s", (_, form) => {
    const redactor = redactorOf(secret);
    expect(redactor.mask(`a ${form} b ${form}`)).toBe("a [redacted] b [redacted]");
    expect(redactor.maskContent(`a ${form} b`)).toBe("a [redacted] b");
  });

  it.each(["", "u:", "ana:", "someone:"])("are masked in base64 behind %j, as in a Basic header", (before) => {
    const value = "canary-secret-value";
    const encoded = Buffer.from(`${before}${value}:after`).toString("base64");
    expect(redactorOf(value).maskContent(encoded)).not.toContain(
      Buffer.from(value.slice(3, -3)).toString("base64").slice(2, -4),
    );
    expect(
      Buffer.from(redactorOf(value).maskContent(encoded).replace("[redacted]", ""), "base64").toString(),
    ).not.toContain("secret");
  });

  it("are masked whole where one holds another", () => {
    expect(redactorOf("abcdabcd", "abcdabcdefgh").mask("abcdabcdefgh abcdabcd abc")).toBe("[redacted] [redacted] abc");
  });

  it("of several lines are masked line by line too", () => {
    const lines = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj", "short"];
    expect(redactorOf(lines.join("\n")).mask(`line 2: ${lines[1]} short`)).toBe("line 2: [redacted] short");
  });

  it("are masked though they are as large as a secret may be", () => {
    const large = Array.from({ length: 64 * 1024 }, (_, index) => "abcdefghij/+ "[(index * 7) % 13]).join("");
    const redactor = redactorOf(large, "another-value");
    for (const form of [large, encodeURIComponent(large), Buffer.from(large).toString("base64"), "another-value"]) {
      expect(redactor.maskContent(`a ${form} b`)).toBe("a [redacted] b");
    }
  });

  it("are masked where a text was cut off in the middle of one", () => {
    const redactor = redactorOf("canary-secret-value", "canary-other-value");
    for (const cut of [
      "canary-secr…",
      'canary-secret-val"…',
      "canary-other...",
      Buffer.from("canary-secret-value").toString("base64").slice(0, 15),
      "canary-s",
    ]) {
      expect(redactor.mask(`failed: ${cut}`), cut).toMatch(/^failed: \[redacted\]["….]*$/);
    }
    expect(redactor.mask("canary-s is a bird, canary-… too")).toBe("canary-s is a bird, canary-… too");
    const many = "canary-s".repeat(100_000);
    expect(redactor.mask(many)).toHaveLength(many.length - 8 + "[redacted]".length);
  });

  it("that are addresses are masked whole, in their password, and cut within it; their words are left alone", () => {
    const redactor = new Redactor();
    redactor.add("postgres://u:pw-1%2F3456@db/x?api_key=k-98765432");
    for (const text of [
      "postgres",
      "postgres server",
      '{"id":"postgres"}',
      "postgres…",
      '["postgres"]',
      "postgres://",
      "postgres://u:",
      "postgres%3A%2F%2Fu",
    ]) {
      expect(redactor.mask(text), text).toBe(text);
    }
    expect(redactor.maskAll({ id: "postgres", server: "postgres" })).toEqual({ id: "postgres", server: "postgres" });
    for (const text of [
      "postgres://u:pw-1%2F3456@db/x?api_key=k-98765432",
      "pw-1%2F3456",
      "pw-1/3456",
      "u:pw-1/3456",
      "k-98765432",
      "postgres://u:pw-1",
      "postgres%3A%2F%2Fu%3Apw",
      Buffer.from("u:pw-1/3456").toString("base64"),
    ]) {
      expect(redactor.mask(`failed: ${text}`), text).toBe("failed: [redacted]");
    }
    expect(redactor.mask("failed: postgres://u:pw-1%2F3456@d")).toBe("failed: postgres://[redacted]@d");
    expect(redactor.mask("failed: postgres://u:p…")).toBe("failed: [redacted]…");
  });

  it("that are addresses may have a token for a name or in their path, and a password that is none", () => {
    const redactor = redactorOf(
      "https://t0ken-abc@git.example/x",
      "https://hooks.example/services/T0/secret-path",
      "postgres://postgres:postgres@db/x",
    );
    expect(redactor.mask("at https://t0ken")).toBe("at [redacted]");
    expect(redactor.mask("at https://hooks.example/serv")).toBe("at [redacted]");
    for (const text of ["at https://", "at https://hooks.example", "postgres", "of postgres…"]) {
      expect(redactor.mask(text), text).toBe(text);
    }
    expect(redactor.mask("as postgres:postgres")).toBe("as [redacted]");
  });

  it("that begin with a word leave the word alone, unless it was cut", () => {
    const redactor = redactorOf("production-key-1");
    expect(redactor.mask("in production")).toBe("in production");
    expect(redactor.mask("in production…")).toBe("in [redacted]…");
    expect(redactor.mask("in production-k")).toBe("in [redacted]");
  });

  it("that are short are left alone, in content even more so", () => {
    const redactor = redactorOf("abc", "", "main", "12345678");
    expect(redactor.mask("abc main 12345678")).toBe("abc [redacted] [redacted]");
    expect(redactor.maskContent("abc main 12345678")).toBe("abc main [redacted]");
  });

  it("that only may be secret are masked in messages and not in content", () => {
    const redactor = new Redactor();
    redactor.add("eu-west-1");
    expect(redactor.mask("in eu-west-1")).toBe("in [redacted]");
    expect(redactor.maskContent("in eu-west-1")).toBe("in eu-west-1");
  });

  it("may come in at any time, with signs of regular expressions and lone surrogates", () => {
    const redactor = redactorOf("a.c*a.c*");
    expect(redactor.mask("a.c*a.c* abccabcc")).toBe("[redacted] abccabcc");
    redactor.add("(x|y)[0]");
    expect(redactor.mask("(x|y)[0] x")).toBe("[redacted] x");
    redactor.add("\ud800lone");
    expect(redactor.mask("\ud800lone")).toBe("[redacted]");
  });

  it("never survive, whatever they are and whatever stands around them", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 8 }), fc.string(), fc.string(), (value, before, after) => {
        const redactor = redactorOf(value);
        for (const mask of [redactor.mask, redactor.maskContent]) {
          const masked = mask(`${before}${value}${after}`).replaceAll("[redacted]", "\u0000");
          expect(masked.includes(value)).toBe(false);
        }
      }),
    );
  });
});

describe("[guard-10a] values that are no text", () => {
  it("are masked inside, keys too, and are the same object where there is nothing to mask", () => {
    const redactor = redactorOf("canary-1234");
    const clean = { a: [1, null, { b: "text" }], c: true };
    expect(redactor.maskAll(clean)).toBe(clean);
    expect(redactor.maskContent(clean)).toBe(clean);
    const dirty = {
      a: ["x canary-1234", 1],
      "k canary-1234": { b: "clean" },
      data: { token: "ghp_abcdefghijklmnopqrst12" },
    };
    expect(redactor.maskAll(dirty)).toEqual({
      a: ["x [redacted]", 1],
      "k [redacted]": { b: "clean" },
      data: { token: "[redacted]" },
    });
    expect(redactor.maskContent(dirty)).toEqual({
      ...dirty,
      a: ["x [redacted]", 1],
      "k canary-1234": undefined,
      "k [redacted]": { b: "clean" },
    });
    expect(dirty.a[0]).toBe("x canary-1234");
  });

  it("may be nested to any depth", () => {
    let deep: unknown = "canary-1234";
    for (let level = 0; level < 100_000; level++) deep = [deep];
    const masked = redactorOf("canary-1234").maskContent(deep);
    let at: unknown = masked;
    while (Array.isArray(at)) at = at[0];
    expect(at).toBe("[redacted]");
  });

  it("pass through at no cost where no value is known", () => {
    const content = { text: "ghp_abcdefghijklmnopqrst12" };
    expect(new Redactor().maskContent(content)).toBe(content);
  });
});

describe("what a short text became", () => {
  it("is looked at anew when there is another value", () => {
    const redactor = new Redactor();
    expect(redactor.mask("tool of hunter2hunter2")).toBe("tool of hunter2hunter2");
    redactor.add("hunter2hunter2");
    expect(redactor.mask("tool of hunter2hunter2")).toBe("tool of [redacted]");
    redactor.addCredential("tool of");
    expect(redactor.mask("tool of hunter2hunter2")).toBe("[redacted] [redacted]");
  });

  it("is the same however many texts there were", () => {
    const redactor = redactorOf("hunter2hunter2");
    for (let round = 0; round < 2; round += 1) {
      for (let number = 0; number < 1500; number += 1) {
        expect(redactor.mask(`${number} hunter2hunter2`)).toBe(`${number} [redacted]`);
      }
    }
  });
});
