import { describe, expect, it } from "vitest";
import { ILLS } from "../../doubles/http-double.ts";
import { VaultDouble } from "../../doubles/vault.ts";
import { failureOf, Place } from "../support.ts";

const TOKEN = "vault-token-of-test";

async function bench(): Promise<{ vault: VaultDouble; place: Place; env: NodeJS.ProcessEnv }> {
  const vault = await new VaultDouble().start();
  vault.secrets.set("kv/app", { password: "p-1", user: "ana", port: 5432 });
  return { vault, place: new Place(), env: { VAULT_ADDR: vault.url, VAULT_TOKEN: TOKEN } };
}

describe("[guard-09] secret://vault", () => {
  it("reads a field of a key-value engine of version 2, with the token", async () => {
    const { vault, place, env } = await bench();
    expect(await place.value("secret://vault/kv/app#password", env)).toBe("p-1");
    expect(vault.asked).toMatchObject([
      { method: "GET", path: "/v1/kv/data/app", headers: { "x-vault-token": TOKEN, "x-vault-request": "true" } },
    ]);
    expect(await place.value("secret://vault/kv/app#port", env)).toBe("5432");
  });

  it("takes the only field where none is named, and lists the names of several", async () => {
    const { vault, place, env } = await bench();
    vault.secrets.set("kv/one", { only: "o" });
    expect(await place.value("secret://vault/kv/one", env)).toBe("o");
    const several = await failureOf(place.value("secret://vault/kv/app", env));
    expect(several).toMatchObject({
      message: "secret://vault/kv/app has 3 fields and none was chosen",
      hint: "Its fields: password, user, port. Choose one with #field.",
    });
    const wrong = await failureOf(place.value("secret://vault/kv/app#pass", env));
    expect(wrong.message).toBe('secret://vault/kv/app#pass has no field "pass"');
    expect(JSON.stringify([several.toObject(), wrong.toObject()])).not.toContain("p-1");
    await failureOf(place.value("secret://vault/kv/app#toString", env));
  });

  it("falls back to version 1, and takes a path that was written with its data/", async () => {
    const { vault, place, env } = await bench();
    vault.secretsOfVersion1.set("old/app/db", { password: "p-v1" });
    expect(await place.value("secret://vault/old/app/db#password", env)).toBe("p-v1");
    vault.secrets.set("kv/app", { password: "p-2" });
    expect(await place.value("secret://vault/kv/data/app#password", env)).toBe("p-2");
  });

  it("escapes names, so that none reaches another path", async () => {
    const { vault, place, env } = await bench();
    vault.secrets.set("kv/a b?c=%d", { x: "odd" });
    expect(await place.value("${secret://vault/kv/a b?c=%d#x}", env).catch((error: unknown) => error)).toMatchObject({
      code: "invalid_config",
    });
    vault.secrets.set("kv/a?c=%2e", { x: "odd" });
    expect(await place.value("${secret://vault/kv/a?c=%2e#x}", env)).toBe("odd");
    expect(vault.asked.at(-1)?.path).toBe("/v1/kv/data/a%3Fc%3D%252e");
  });

  it("sends the namespace", async () => {
    const { vault, place, env } = await bench();
    vault.namespace = "team-a/";
    expect((await failureOf(place.value("secret://vault/kv/app#password", env))).message).toContain("403");
    expect(await place.value("secret://vault/kv/app#password", { ...env, VAULT_NAMESPACE: "team-a/" })).toBe("p-1");
  });

  it("signs in with an AppRole once for several secrets, and again when the token was revoked", async () => {
    const { vault, place } = await bench();
    const env = { VAULT_ADDR: vault.url, VAULT_ROLE_ID: "role-of-test", VAULT_SECRET_ID: "secret-id-of-test" };
    const secrets = place.secrets(env, { cacheSeconds: 0 });
    const both = await Promise.all(
      ["password", "user"].map((field) => secrets.resolve(`secret://vault/kv/app#${field}`)),
    );
    expect(both.map(({ value }) => value)).toEqual(["p-1", "ana"]);
    expect(vault.logins).toBe(1);
    vault.tokens.clear();
    expect((await secrets.resolve("secret://vault/kv/app#user")).value).toBe("ana");
    expect(vault.logins).toBe(2);
    expect(secrets.redactor.mask("role-of-test secret-id-of-test hvs.approle-token-2")).toBe(
      "[redacted] [redacted] [redacted]",
    );
    const wrong = await failureOf(
      place.value("secret://vault/kv/app#user", { ...env, VAULT_SECRET_ID: "wrong-secret-id" }),
    );
    expect(wrong.message).toBe(
      "secret://vault/kv/app#user is refused by Vault: the sign-in with AppRole answered 400: invalid role or secret ID",
    );
  });

  it("uses the token that `vault login` left, and says what to do where there is none", async () => {
    const { vault, place } = await bench();
    const env = { VAULT_ADDR: vault.url };
    expect((await failureOf(place.value("secret://vault/kv/app#user", env))).hint).toContain("vault login");
    place.write(".vault-token", `${TOKEN}\n`);
    expect(await place.value("secret://vault/kv/app#user", env)).toBe("ana");
    expect((await failureOf(place.value("secret://vault/kv/app#user", {}))).hint).toContain("VAULT_ADDR");
  });

  it("tells a refusal, a missing and a deleted secret apart, and none of them passes", async () => {
    const { vault, place, env } = await bench();
    vault.secrets.set("kv/gone", "deleted");
    const failure = (reference: string, more = {}): Promise<{ code: string; message: string }> =>
      failureOf(place.value(reference, { ...env, ...more }));
    expect(await failure("secret://vault/kv/none#x")).toMatchObject({
      code: "invalid_config",
      message: "secret://vault/kv/none#x is not in Vault (404)",
    });
    expect(await failure("secret://vault/kv/gone#x")).toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining("404"),
    });
    const refused = await failure("secret://vault/kv/app#user", { VAULT_TOKEN: "stale-token-of-test" });
    expect(refused).toMatchObject({
      code: "invalid_config",
      message: expect.stringMatching(/is refused by Vault: the secret answered 403.*permission denied/s),
    });
    expect(refused.message).not.toContain("stale-token-of-test");
  });

  it.each(ILLS)("survives %s", async (_, ill, passing) => {
    const { vault, place, env } = await bench();
    vault.ill = ill;
    const error = await failureOf(place.value("secret://vault/kv/app#user", env));
    expect(error.code).toBe(passing ? "server_unavailable" : "invalid_config");
    expect(error.message).not.toMatch(/cana|upstream/);
    vault.ill = undefined;
    expect(await place.value("secret://vault/kv/app#user", env)).toBe("ana");
  });

  it("gives up an answer that breaks off, one that is too large, one that never comes, and a port where nobody is", async () => {
    const { vault, place, env } = await bench();
    vault.ill = () => "broken";
    expect(await failureOf(place.value("secret://vault/kv/app#user", env))).toMatchObject({
      code: "server_unavailable",
      message: expect.stringContaining("broke off"),
    });
    vault.ill = () => ({ status: 200, body: `{"data":"${"x".repeat(2 ** 21)}"}` });
    expect((await failureOf(place.value("secret://vault/kv/app#user", env))).message).toContain("larger than 1 MiB");
    vault.ill = () => "never";
    const controller = new AbortController();
    const late = failureOf(place.value("secret://vault/kv/app#user", env, {}, { signal: controller.signal }));
    setTimeout(() => controller.abort(), 20);
    expect((await late).code).toBe("cancelled");
    const closed = await new VaultDouble().start();
    const { url } = closed;
    await closed.stop();
    const nobody = await failureOf(place.value("secret://vault/kv/app#user", { ...env, VAULT_ADDR: url }));
    expect(nobody).toMatchObject({
      code: "server_unavailable",
      message: expect.stringContaining("cannot be reached (ECONNREFUSED)"),
    });
  });

  it("follows a standby node to the active one, and never takes the token to plain http elsewhere", async () => {
    const { vault, place, env } = await bench();
    const standby = await new VaultDouble().start();
    standby.ill = ({ path }) => ({ status: 307, headers: { Location: `${vault.url}${path}` } });
    expect(await place.value("secret://vault/kv/app#user", { ...env, VAULT_ADDR: standby.url })).toBe("ana");
    standby.ill = ({ path }) => ({ status: 307, headers: { Location: `http://vault.example.com${path}` } });
    expect(
      (await failureOf(place.value("secret://vault/kv/app#user", { ...env, VAULT_ADDR: standby.url }))).message,
    ).toContain("is plain http, to vault.example.com");
    expect(
      (await failureOf(place.value("secret://vault/kv/app#user", { ...env, VAULT_ADDR: "http://vault.example.com" })))
        .hint,
    ).toContain("Use https");
    expect(
      (await failureOf(place.value("secret://vault/kv/app#user", { ...env, VAULT_ADDR: "vault" }))).message,
    ).toContain("VAULT_ADDR is not an http or https address");
  });
});
