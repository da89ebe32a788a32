import { describe, expect, it } from "vitest";
import type { ServerSpec } from "../../src/model/server-spec.ts";
import { type ProviderContext, SecretFailure, type SecretProvider } from "../../src/secrets/provider.ts";
import { resolveSpec } from "../../src/secrets/resolve-spec.ts";
import { Secrets, type SecretsOptions } from "../../src/secrets/secrets.ts";
import { specOf } from "../support/connection-bench.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { failureOf } from "./support.ts";

/** Stands in for Vault: each look-up waits until the test answers it. */
class SlowProvider implements SecretProvider {
  readonly name = "vault";
  readonly cached: boolean = true;
  readonly asked: {
    path: string;
    context: ProviderContext;
    answer: (value: string) => void;
    fail: (error: Error) => void;
  }[] = [];

  resolve({ path }: { path: string }, context: ProviderContext): Promise<string> {
    return new Promise((answer, fail) => this.asked.push({ path, context, answer, fail }));
  }

  answerAll(value: string): void {
    for (const { answer } of this.asked) answer(value);
  }
}

function bench(more: Partial<SecretsOptions> = {}): { provider: SlowProvider; clock: FakeClock; secrets: Secrets } {
  const provider = new SlowProvider();
  const clock = new FakeClock();
  return { provider, clock, secrets: new Secrets({ env: {}, clock, providers: [provider], ...more }) };
}

const A = "secret://vault/kv/a#x";
const B = "secret://vault/kv/b#x";

describe("[guard-08a] looking up", () => {
  it("is lazy: nothing is asked for until a text is resolved", async () => {
    const { provider, secrets } = bench();
    specOf({ command: "x", env: { A } });
    await settle();
    expect(provider.asked).toEqual([]);
    void secrets.resolve(A);
    await settle();
    expect(provider.asked).toHaveLength(1);
  });

  it("asks for all references of a server at once", async () => {
    const { provider, secrets } = bench();
    const spec = specOf({ command: "x", args: [`${A} ${B}`], env: { C: "secret://vault/kv/c#x" } });
    const resolved = resolveSpec(spec, secrets);
    await settle();
    expect(provider.asked.map(({ path }) => path).toSorted()).toEqual(["kv/a", "kv/b", "kv/c"]);
    provider.answerAll("v");
    expect(await resolved).toMatchObject({ args: ["v v"], env: { C: "v" } });
  });

  it("is single-flight: those who ask meanwhile wait for the same answer", async () => {
    const { provider, secrets } = bench();
    const many = Promise.all(Array.from({ length: 20 }, () => secrets.resolve(A)));
    await settle();
    expect(provider.asked).toHaveLength(1);
    provider.answerAll("v");
    expect(new Set((await many).map(({ value }) => value))).toEqual(new Set(["v"]));
  });

  it("keeps a value for the time allowed and not longer, and tells fields, paths and folders apart", async () => {
    const { provider, clock, secrets } = bench({ cacheSeconds: 10 });
    const read = async (text: string, baseDir?: string): Promise<number> => {
      const before = provider.asked.length;
      const done = secrets.resolve(text, { baseDir });
      await settle();
      provider.answerAll("v");
      await done;
      return provider.asked.length - before;
    };
    expect(await read(A)).toBe(1);
    await clock.advance(9_999);
    expect(await read(A)).toBe(0);
    expect(await read("secret://vault/kv/a#other")).toBe(1);
    expect(await read(A, "/elsewhere")).toBe(1);
    await clock.advance(1);
    expect(await read(A)).toBe(1);
    secrets.forget();
    expect(await read(A)).toBe(1);
  });

  it("keeps nothing with cacheSeconds 0, nor for a provider that is always up to date", async () => {
    for (const { provider, secrets } of [bench({ cacheSeconds: 0 }), uncached()]) {
      for (let round = 1; round <= 2; round++) {
        const done = secrets.resolve(A);
        await settle();
        provider.answerAll("v");
        await done;
        expect(provider.asked).toHaveLength(round);
      }
    }
  });

  it("does not keep a failure", async () => {
    const { provider, secrets } = bench();
    const failed = failureOf(secrets.resolve(A));
    await settle();
    provider.asked[0]?.fail(new SecretFailure("is sealed", { passing: true }));
    expect(await failed).toMatchObject({ code: "server_unavailable", message: `${A} is sealed` });
    const again = secrets.resolve(A);
    await settle();
    provider.answerAll("v");
    expect((await again).value).toBe("v");
  });
});

describe("[guard-08a] rotation", () => {
  async function connect(
    spec: ServerSpec,
    secrets: Secrets,
    provider: SlowProvider,
    value: string,
  ): Promise<string | undefined> {
    const resolved = resolveSpec(spec, secrets);
    await settle();
    provider.answerAll(value);
    return (await resolved).env["T"];
  }

  it("is picked up at the next connect, though the value is still kept for others", async () => {
    const { provider, secrets } = bench();
    const [one, two] = [specOf({ command: "x", env: { T: A } }, "one"), specOf({ command: "x", env: { T: A } }, "two")];
    expect(await connect(one, secrets, provider, "old")).toBe("old");
    expect(await connect(two, secrets, provider, "new")).toBe("old");
    expect(await connect(one, secrets, provider, "new")).toBe("new");
    // The second server now finds what the first has read anew.
    expect(await connect(two, secrets, provider, "newer")).toBe("new");
    expect(provider.asked).toHaveLength(2);
  });
});

describe("[guard-08a] giving up", () => {
  it("ends a look-up when the last connection that waits for it is gone, not before", async () => {
    const { provider, secrets } = bench();
    const [first, second] = [new AbortController(), new AbortController()];
    const one = failureOf(secrets.resolve(A, { signal: first.signal }));
    const two = failureOf(secrets.resolve(A, { signal: second.signal }));
    await settle();
    const signal = provider.asked[0]?.context.signal;
    first.abort();
    expect((await one).code).toBe("cancelled");
    expect(signal?.aborted).toBe(false);
    second.abort();
    expect((await two).code).toBe("cancelled");
    expect(signal?.aborted).toBe(true);
  });

  it("lets nobody join a look-up that was ended", async () => {
    const { provider, secrets } = bench();
    const gone = new AbortController();
    const left = failureOf(secrets.resolve(A, { signal: gone.signal }));
    await settle();
    gone.abort();
    const next = secrets.resolve(A);
    await left;
    await settle();
    expect(provider.asked).toHaveLength(2);
    provider.asked[1]?.answer("v");
    expect((await next).value).toBe("v");
  });

  it("asks nothing for a connection that is over already", async () => {
    const { provider, secrets } = bench();
    const error = await failureOf(
      resolveSpec(specOf({ command: "x", env: { A } }), secrets, { signal: AbortSignal.abort() }),
    );
    expect(error.code).toBe("cancelled");
    provider.answerAll("v");
  });

  it("waits ten seconds for a provider, also for one that ignores its signal", async () => {
    const { provider, clock, secrets } = bench();
    const failed = failureOf(secrets.resolve(A));
    await clock.advance(9_999);
    expect(provider.asked[0]?.context.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(await failed).toMatchObject({ code: "server_unavailable", message: `${A} was not given within 10 s` });
    expect(provider.asked[0]?.context.signal.aborted).toBe(true);
    expect(clock.pending).toBe(0);
  });
});

describe("[guard-08a] failing closed", () => {
  it("names the reference and the provider's reason, and masks what the reason quotes", async () => {
    const { provider, secrets } = bench();
    const failed = failureOf(secrets.resolve(`Bearer ${A}`));
    await settle();
    provider.asked[0]?.context.conceal("own-credential-of-vault");
    provider.asked[0]?.fail(
      new SecretFailure("is refused: own-credential-of-vault and ghp_abcdefghijklmnopqrstuvwx", { hint: "Log in." }),
    );
    expect(await failed).toMatchObject({
      code: "invalid_config",
      message: `${A} is refused: [redacted] and [redacted]`,
      hint: "Log in.",
      details: { reference: A },
    });
  });

  it("takes a fault of a provider's own code for a failure too", async () => {
    const { provider, secrets } = bench();
    const failed = failureOf(secrets.resolve(A));
    await settle();
    provider.asked[0]?.fail(new TypeError("x is not a function\n    at secret place"));
    expect((await failed).message).toBe(`${A} could not be looked up: x is not a function`);
  });

  it("hands nothing of a text over when one of its references fails, and masks what others gave", async () => {
    const { provider, secrets } = bench();
    const failed = failureOf(secrets.resolve(`${A} ${B}`));
    await settle();
    provider.asked[0]?.answer("the-value-of-a");
    provider.asked[1]?.fail(new SecretFailure("is not there"));
    expect((await failed).message).toBe(`${B} is not there`);
    expect(secrets.redactor.mask("the-value-of-a")).toBe("[redacted]");
  });
});

function uncached(): ReturnType<typeof bench> {
  class Direct extends SlowProvider {
    override readonly cached = false;
  }
  const provider = new Direct();
  const clock = new FakeClock();
  return { provider, clock, secrets: new Secrets({ env: {}, clock, providers: [provider] }) };
}
