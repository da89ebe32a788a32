/** A config that takes a secret in every place that can take one, with servers that tell what they were given. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { HttpDouble } from "../doubles/http-double.ts";
import { VaultDouble } from "../doubles/vault.ts";
import { Canaries } from "./canaries.ts";

const SERVER = join(import.meta.dirname, "../fixtures/leaky-server.mjs");

export interface LeakySetup {
  readonly canaries: Canaries;
  readonly env: NodeJS.ProcessEnv;
  readonly config: { readonly mcpServers: Record<string, unknown>; readonly [key: string]: unknown };
}

/** @param dir Holds the secret files and programs; no surface may show what is in it. */
export async function leakySetup(dir: string): Promise<LeakySetup> {
  const canaries = new Canaries();
  const vault = await new VaultDouble().start();
  const token = canaries.make("VAULT_TOKEN");
  vault.tokens.add(token);
  vault.secrets.set("kv/app", {
    env: canaries.make("secret://vault in env"),
    header: canaries.make("secret://vault in a header"),
  });
  for (const folder of ["bin", "keys"]) mkdirSync(join(dir, folder), { recursive: true });
  const secretFile = (name: string, value: string): string => {
    writeFileSync(join(dir, "keys", name), `${value}\n`, { mode: 0o600 });
    return `secret://file/keys/${name}`;
  };
  const program = (name: string, value: string): void => {
    const file = join(dir, "bin", name);
    writeFileSync(file, `#!/bin/sh\ncat <<'END'\n${value}\nEND\n`);
    chmodSync(file, 0o755);
  };
  program("keeper", canaries.make("secret://exec"));
  program("secret-tool", canaries.make("secret://keychain"));
  program("security", canaries.values.get("secret://keychain") ?? "");
  program("complains", "");
  writeFileSync(
    join(dir, "bin", "complains"),
    `#!/bin/sh\necho "cannot unlock with token=${canaries.make("complaint of a program", "plain")}" >&2\nexit 4\n`,
  );

  const env = {
    PATH: [join(dir, "bin"), process.env["PATH"]].join(delimiter),
    VAULT_ADDR: vault.url,
    VAULT_TOKEN: token,
    FROM_ENV: canaries.make("secret://env"),
    VARIABLE_SECRET: canaries.make("${VAR}"),
    // Nobody's business but the hub's.
    UNRELATED_TOKEN: canaries.make("the hub's own environment"),
  };
  const leaky = (mode: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
    command: process.execPath,
    args: [
      SERVER,
      mode,
      secretFile(`arg-${mode}`, canaries.make(`secret://file in args of ${mode}`)),
      "--api-key",
      canaries.make(`plain text in args of ${mode}`),
    ],
    env: {
      CANARY_1: "secret://env/FROM_ENV",
      CANARY_2: "${VARIABLE_SECRET}",
      CANARY_3: "before ${secret://vault/kv/app#env} after",
      CANARY_4: "secret://exec/keeper",
      CANARY_5: "secret://keychain/some/body",
      URL_OF_DB: "postgres://u:secret://env/FROM_ENV",
      PLAIN_TOKEN: canaries.make(`plain text in env of ${mode}`),
    },
    restart: false,
    ...more,
  });

  // Answers with whatever was sent to it.
  const echo = (status: number, contentType = "text/plain"): Promise<HttpDouble> =>
    new HttpDouble(({ path, headers, body }) => ({
      status,
      headers: {
        "Content-Type": contentType,
        "X-Echo": headers["authorization"] ?? "none",
        ...(status === 302 ? { Location: `https://127.0.0.1:1${path}` } : {}),
      },
      body:
        contentType === "application/json"
          ? { jsonrpc: "2.0", id: null, error: { code: -32000, message: `${path} ${JSON.stringify(headers)} ${body}` } }
          : `${path} ${JSON.stringify(headers)} ${body}`,
    })).start();
  const [unauthorized, forbidden, broken, html, json, moved, mute] = await Promise.all([
    echo(401),
    echo(403),
    echo(500),
    echo(200, "text/html"),
    echo(400, "application/json"),
    echo(302),
    new HttpDouble(() => "never").start(),
  ]);
  const remote = (name: string, double: HttpDouble, more: Record<string, unknown> = {}): Record<string, unknown> => ({
    url: `${double.url}/mcp?api_key=${canaries.make(`plain text in the url of ${name}`, "plain")}&k=${secretFile(`url-${name}`, canaries.make(`secret://file in the url of ${name}`, "plain"))}`,
    headers: {
      "X-Vault": "secret://vault/kv/app#header",
      "X-Api-Key": canaries.make(`plain text in a header of ${name}`),
      "X-Free": `a secret://file/keys/header-${name}`,
    },
    auth: { type: "bearer", token: secretFile(`bearer-${name}`, canaries.make(`bearer of ${name}`)) },
    restart: false,
    timeout: 3000,
    ...more,
  });
  for (const name of [
    "unauthorized",
    "forbidden",
    "broken",
    "html",
    "json",
    "moved",
    "mute",
    "nobody",
    "plainhttp",
    "noaddress",
  ]) {
    secretFile(`header-${name}`, canaries.make(`secret://file in a header of ${name}`));
  }
  const fixed = (tool: string): [string, object] => [
    tool,
    {
      parameters: {
        given: { fixed: `a ${secretFile(`fixed-${tool}`, canaries.make(`secret://file in an override of ${tool}`))}` },
      },
    },
  ];
  const userinfo = canaries.make("userinfo of a url", "plain");
  const config = {
    mcpServers: {
      serve: leaky("serve", { overrides: Object.fromEntries(["dump", "fails", "refuses"].map(fixed)) }),
      crash: leaky("crash"),
      silent: leaky("silent", { timeout: 1500 }),
      unstartable: leaky("unstartable", { command: `/nowhere/\${secret://file/keys/arg-serve}` }),
      unauthorized: remote("unauthorized", unauthorized),
      forbidden: remote("forbidden", forbidden),
      broken: remote("broken", broken),
      html: remote("html", html),
      json: remote("json", json),
      moved: remote("moved", moved),
      mute: remote("mute", mute, { timeout: 1500 }),
      nobody: {
        ...remote("nobody", mute),
        url: `http://ana:${userinfo}@127.0.0.1:9/?token=${canaries.make("query of an address where nobody is", "plain")}`,
      },
      plainhttp: { ...remote("plainhttp", mute), url: "http://example.com/?token=secret://file/keys/bearer-mute" },
      noaddress: { ...remote("noaddress", mute), url: "secret://file/keys/bearer-mute" },
      apikey: {
        url: unauthorized.url,
        auth: { type: "api-key", key: secretFile("api-key", canaries.make("api key")) },
        restart: false,
      },
      unresolved: {
        command: "x",
        env: {
          A: "secret://env/FROM_ENV ${GONE}",
          B: "secret://exec/complains",
          C: "secret://vault/kv/app#nofield",
          D: "secret://file/keys",
        },
      },
    },
    secrets: { exec: { keeper: ["keeper"], complains: ["complains"] } },
    audit: { arguments: true },
  };
  return { canaries, env, config };
}
