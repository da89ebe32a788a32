import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../src/config/load-config.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import { ToolcribError } from "../../../src/model/errors.ts";
import type { LoadedConfig } from "../../../src/model/loaded-config.ts";
import { temporaryHome } from "./support.ts";

function load(http: unknown): Promise<LoadedConfig> {
  const home = temporaryHome();
  // Also what no typed program would write.
  return loadConfig({ config: { http } as ConfigInput, env: {}, cwd: home, home });
}

async function problems(http: unknown): Promise<string[]> {
  const error: unknown = await load(http).catch((thrown: unknown) => thrown);
  if (!(error instanceof ToolcribError)) throw new Error("it was accepted");
  return error.message.split("\n");
}

describe("[gate-08a] the http key of the config", () => {
  it("is loopback by default, with every limit set", async () => {
    const { config } = await load(undefined);
    expect(config.http).toEqual({
      host: "127.0.0.1",
      port: 4700,
      trustedProxies: [],
      allowedHosts: [],
      allowedOrigins: [],
      cors: [],
      limits: {
        bodyBytes: 16 * 1024 * 1024,
        headerBytes: 16 * 1024,
        sessions: 5000,
        streams: 5000,
        connections: 10_000,
        sessionIdleMs: 1_800_000,
        requestTimeoutMs: 30_000,
        shutdownMs: 10_000,
      },
    });
  });

  it("a token may read and call unless it says otherwise", async () => {
    const { config } = await load({
      auth: { tokens: [{ token: "${T}" }], oauth: { issuer: "https://login.example.com" } },
    });
    expect(config.http.auth).toEqual({
      tokens: [{ token: "${T}", scopes: ["read", "call"] }],
      oauth: { issuer: "https://login.example.com", scopes: { read: "read", call: "call" }, userClaim: "sub" },
    });
  });

  it.each<[object, RegExp]>([
    [{ port: 70_000 }, /http\.port/],
    [{ publicUrl: "tools.example.com" }, /http\.publicUrl: .*an http or https address/],
    [{ publicUrl: "https://a@tools.example.com" }, /http\.publicUrl/],
    [{ trustedProxies: ["10.0.0.0/40"] }, /http\.trustedProxies\[0\]: .*network such as/],
    [{ allowedHosts: ["a:80"] }, /http\.allowedHosts\[0\]: .*without port/],
    [{ cors: ["*"] }, /http\.cors\[0\]: .*an origin/],
    [{ cors: ["http://*:3000"] }, /http\.cors\[0\]: .*an origin/],
    [{ allowedOrigins: ["*"] }, /http\.allowedOrigins\[0\]: .*an origin/],
    [{ allowedOrigins: ["https://a.example/path"] }, /http\.allowedOrigins\[0\]/],
    [{ auth: { tokens: [{ user: "ada" }] } }, /http\.auth\.tokens\[0\]: .*either/],
    [{ auth: { tokens: [{ token: "${T}", sha256: "0".repeat(64) }] } }, /http\.auth\.tokens\[0\]: .*either/],
    [{ auth: { tokens: [{ sha256: "0".repeat(63) }] } }, /http\.auth\.tokens\[0\]\.sha256/],
    [
      {
        auth: {
          tokens: [
            { name: "a", token: "${T}" },
            { name: "a", token: "${U}" },
          ],
        },
      },
      /http\.auth\.tokens\[1\]\.name: .*two tokens/,
    ],
    [{ auth: { tokens: [{ token: "${T}", scopes: ["write"] }] } }, /http\.auth\.tokens\[0\]\.scopes\[0\]/],
    [{ auth: { oauth: {} } }, /http\.auth\.oauth\.issuer: is missing/],
    [{ auth: { oauth: { issuer: "https://a", scopes: { admin: true } } } }, /http\.auth\.oauth\.scopes\.admin/],
    [{ limits: { bodyBytes: 0 } }, /http\.limits\.bodyBytes/],
  ])("%j is refused where it stands", async (http, where) => {
    expect(await problems(http)).toEqual([expect.stringMatching(where)]);
  });

  it("never shows a token in a problem", async () => {
    const text = (
      await problems({ auth: { tokens: [{ token: 12_345_678 }, { token: "canary-canary", scope: "x", role: 5 }] } })
    ).join();
    expect(text).not.toMatch(/12345678|canary/);
  });
});

describe("[gate-08b] a token in plain text", () => {
  it("is warned about, like every credential; a reference is not", async () => {
    const { warnings } = await load({
      auth: { tokens: [{ token: "canary-token" }, { token: "secret://env/T" }, { token: "${T}" }, { token: "x${T}" }] },
    });
    expect(warnings).toMatchObject([{ code: "plain_credential", path: "http.auth.tokens[0].token" }]);
    expect(JSON.stringify(warnings)).not.toContain("canary");
  });
});
