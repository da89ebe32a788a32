import { expect, it } from "vitest";
import { ToolcribError } from "../../src/model/errors.ts";
import { ServerEntrySchema, type ServerEntryInput, type ServerSpec } from "../../src/model/server-spec.ts";
import { resolveSpec } from "../../src/secrets/resolve-spec.ts";

function spec(entry: ServerEntryInput): ServerSpec {
  return { ...ServerEntrySchema.parse(entry), id: "s", origin: { file: "f", dialect: "toolcrib" }, baseDir: "/base" };
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
    secrets: ["tok-12345"],
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
  const resolved = await resolveSpec(
    spec({ url: "https://h/${REGION}", headers: { authorization: "old", "X-A": "1" }, auth: { type: "bearer", token: "${TOKEN}" } }),
    env,
  );
  expect(resolved.url).toBe("https://h/eu-west");
  expect(resolved.headers).toEqual({ "X-A": "1", Authorization: "Bearer tok-12345" });
  expect(resolved.secrets).toContain("tok-12345");
});

it("applies an api key with its header", async () => {
  const key = { type: "api-key", key: "secret://env/TOKEN" } as const;
  expect((await resolveSpec(spec({ url: "https://h", auth: key }), env)).headers).toEqual({ "X-API-Key": "tok-12345" });
  const named = spec({ url: "https://h", auth: { ...key, header: "X-Team" } });
  expect((await resolveSpec(named, env)).headers).toEqual({ "X-Team": "tok-12345" });
});

it("counts as secret what keys and references say, and no everyday variable", async () => {
  const { secrets } = await resolveSpec(
    spec({ command: "x", env: { API_KEY: "written-out", Authorization: "Bearer abcdef", PORT: "8080", H: "${HOME}" } }),
    env,
  );
  expect(secrets.toSorted()).toEqual(["Bearer abcdef", "abcdef", "written-out"]);
});

it("[spine-06b] names every reference that fails, where it stands, and no value", async () => {
  const failing = spec({ command: "x", args: ["${A}"], env: { T: "${TOKEN} ${B}", V: "secret://vault/x" } });
  const error: unknown = await resolveSpec(failing, env).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ToolcribError);
  const { code, message, details } = (error as ToolcribError).toObject();
  expect(code).toBe("invalid_config");
  expect(message).toBe(
    'Server "s": args[0]: ${A} is not set; env.T: ${B} is not set; env.V: secret://vault/x names the secret provider "vault", which is not built in this version',
  );
  expect(message).not.toContain("tok-12345");
  expect(details).toEqual({ references: ["${A}", "${B}", "secret://vault/x"] });
});
