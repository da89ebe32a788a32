import { expect, it } from "vitest";
import { ToolcribError } from "../../src/model/errors.ts";
import { ServerEntrySchema, type ServerEntryInput, type ServerSpec } from "../../src/model/server-spec.ts";
import { Redactor } from "../../src/secrets/redactor.ts";
import { resolveSpec as resolveWith, type ResolvedSpec } from "../../src/secrets/resolve-spec.ts";
import { Secrets } from "../../src/secrets/secrets.ts";
import { failureOf, Place } from "./support.ts";

function spec(entry: ServerEntryInput): ServerSpec {
  return { ...ServerEntrySchema.parse(entry), id: "s", origin: { file: "f", dialect: "toolcrib" }, baseDir: "/base" };
}

function resolveSpec(given: ServerSpec, env: NodeJS.ProcessEnv, redactor = new Redactor()): Promise<ResolvedSpec> {
  return resolveWith(given, new Secrets({ env, redactor }));
}

const env = { HOME: "/home/ana", TOKEN: "tok-12345", PROGRAM: "node", REGION: "eu-west" };

it("[spine-06a] resolves every string of a stdio server when asked to, and leaves the spec as it is", async () => {
  const before = spec({
    command: "${PROGRAM}",
    args: ["--dir", "${HOME}/x", "a${MISSING:-b}"],
    env: { A: "secret://env/TOKEN", B: "plain" },
    cwd: "~/work",
  });
  const copy = structuredClone(before);
  expect(await resolveSpec(before, env)).toEqual({
    command: "node",
    args: ["--dir", "/home/ana/x", "ab"],
    env: { A: "tok-12345", B: "plain" },
    cwd: "/home/ana/work",
    headers: {},
    warnings: [],
  });
  expect(before).toEqual(copy);
});

it.each([
  ["./data", "/base/data"],
  ["/abs", "/abs"],
  ["~", "/home/ana"],
  ["${HOME}/x", "/home/ana/x"],
])("takes the working directory %s as %s", async (cwd, absolute) => {
  expect((await resolveSpec(spec({ command: "x", cwd }), env)).cwd).toBe(absolute);
});

it("applies bearer auth over a header that is written differently", async () => {
  const redactor = new Redactor();
  const bearer = { type: "bearer", token: "${TOKEN}" } as const;
  const resolved = await resolveSpec(
    spec({ url: "https://h/${REGION}", headers: { authorization: "old", "X-A": "1" }, auth: bearer }),
    env,
    redactor,
  );
  expect(resolved.url).toBe("https://h/eu-west");
  expect(resolved.headers).toEqual({ "X-A": "1", Authorization: "Bearer tok-12345" });
  expect(resolved.auth).toEqual({ type: "bearer", token: "tok-12345" });
  expect(redactor.mask("with tok-12345 in eu-west")).toBe("with [redacted] in [redacted]");
});

it("applies an api key with its header", async () => {
  const key = { type: "api-key", key: "secret://env/TOKEN" } as const;
  expect((await resolveSpec(spec({ url: "https://h", auth: key }), env)).headers).toEqual({ "X-API-Key": "tok-12345" });
  const named = spec({ url: "https://h", auth: { ...key, header: "X-Team" } });
  expect((await resolveSpec(named, env)).headers).toEqual({ "X-Team": "tok-12345" });
});

it("[guard-10a] masks in messages what references give, and in content only what is a credential by name or place", async () => {
  const redactor = new Redactor();
  const entry = {
    API_KEY: "written-out",
    Authorization: "Bearer abcdef-1",
    PORT: "8080",
    H: "${HOME}",
    R: "${REGION}",
    S: "secret://env/TOKEN",
  };
  await resolveSpec(
    spec({
      command: "x",
      env: entry,
      args: ["--api-key", "key-as-arg", "--token=token-as-arg", "--max-tokens", "1000"],
    }),
    env,
    redactor,
  );
  const text = "written-out abcdef-1 8080 /home/ana eu-west tok-12345 key-as-arg token-as-arg 1000";
  expect(redactor.mask(text)).toBe(
    "[redacted] [redacted] 8080 /home/ana [redacted] [redacted] [redacted] [redacted] 1000",
  );
  expect(redactor.maskContent(text)).toBe(
    "[redacted] [redacted] 8080 /home/ana eu-west [redacted] [redacted] [redacted] 1000",
  );
});

it("[guard-10a] leaves a path of this machine readable, unless it is called like a credential", async () => {
  const redactor = new Redactor();
  const places = { WORK: import.meta.dirname, API_TOKEN: import.meta.filename, GONE: "/no/such/place" };
  const entry = { A: "${WORK}", B: "${API_TOKEN}", C: "${GONE}" };
  await resolveSpec(spec({ command: "x", env: entry }), places, redactor);
  expect(redactor.mask(`${import.meta.dirname}/notes`)).toBe(`${import.meta.dirname}/notes`);
  expect(redactor.mask(import.meta.filename)).toBe("[redacted]");
  expect(redactor.mask("/no/such/place")).toBe("[redacted]");
});

it("[guard-10a] masks what is secret in an address", async () => {
  const redactor = new Redactor();
  await resolveSpec(spec({ url: "https://ana:p%40ssw0rd@h/x?api_key=in-the-query&page=seventeen" }), env, redactor);
  expect(redactor.maskContent("p@ssw0rd p%40ssw0rd in-the-query seventeen")).toBe(
    "[redacted] [redacted] [redacted] seventeen",
  );
});

it("[guard-07a] resolves references in every place that takes one, whole or inside a text", async () => {
  const place = new Place();
  place.write("s.txt", "value-1\n");
  const file = "secret://file/s.txt";
  const stdio = {
    ...spec({
      command: "x",
      args: [`--a=${file}`, file],
      env: { A: file, B: `x ${file}, y` },
      cwd: `/tmp/\${${file}}/z`,
    }),
    baseDir: place.dir,
  };
  const secrets = place.secrets();
  expect(await resolveWith(stdio, secrets)).toMatchObject({
    args: ["--a=value-1", "value-1"],
    env: { A: "value-1", B: "x value-1, y" },
    cwd: "/tmp/value-1/z",
  });
  const http = {
    ...spec({
      url: `https://h/?k=${file}&x=1`,
      headers: { "X-H": `a ${file}` },
      auth: { type: "api-key", key: file, header: "X-K" },
    }),
    baseDir: place.dir,
  };
  expect(await resolveWith(http, secrets)).toMatchObject({
    url: "https://h/?k=value-1&x=1",
    headers: { "X-H": "a value-1", "X-K": "value-1" },
  });
});

it("says what is unwise about how a secret is kept", async () => {
  const place = new Place();
  const file = place.write("open.txt", "value", 0o644);
  const { warnings } = await resolveWith(
    {
      ...spec({ command: "x", env: { A: "secret://file/open.txt", B: "secret://file/open.txt" } }),
      baseDir: place.dir,
    },
    place.secrets(),
  );
  expect(warnings).toEqual([`The secret file ${file} can be read by other users; chmod 600 makes it yours alone.`]);
});

it("resolves the strings of a login and leaves it to others", async () => {
  const auth = { type: "client-credentials", clientId: "${REGION}", clientSecret: "secret://env/TOKEN" };
  const given = { ...spec({ url: "https://h" }), auth: auth as ServerSpec["auth"] };
  const resolved = await resolveSpec(given, env);
  expect(resolved.auth).toEqual({ type: "client-credentials", clientId: "eu-west", clientSecret: "tok-12345" });
  expect(resolved.headers).toEqual({});
});

it("[spine-06b] names every reference that fails, where it stands, and no value", async () => {
  const failing = spec({ command: "x", args: ["${A}"], env: { T: "${TOKEN} ${B}", V: "secret://nowhere/x" } });
  const error: unknown = await resolveSpec(failing, env).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ToolcribError);
  const { code, message, details } = (error as ToolcribError).toObject();
  expect(code).toBe("invalid_config");
  expect(message).toBe(
    'Server "s": args[0]: ${A} is not set; env.T: ${B} is not set; env.V: secret://nowhere/x names the secret provider "nowhere", which does not exist',
  );
  expect(message).not.toContain("tok-12345");
  expect(details).toEqual({ references: ["${A}", "${B}", "secret://nowhere/x"], sent: false });
});

it("[guard-08a] is worth another attempt only if every failure may pass", async () => {
  const down = "secret://vault/kv/a#b";
  const given = { VAULT_ADDR: "http://127.0.0.1:1", VAULT_TOKEN: "vault-token-1" };
  const passing = await failureOf(resolveSpec(spec({ command: "x", env: { A: down } }), given));
  expect(passing.code).toBe("server_unavailable");
  const mixed = await failureOf(resolveSpec(spec({ command: "x", env: { A: down, B: "${MISSING}" } }), given));
  expect(mixed).toMatchObject({
    code: "invalid_config",
    hint: "Set MISSING in the environment that Toolcrib runs in.",
  });
});
