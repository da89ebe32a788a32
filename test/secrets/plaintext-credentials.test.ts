import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { findPlaintextCredentials, replaceCredentials } from "../../src/secrets/plaintext-credentials.ts";

const TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

function places(entry: JsonObject): Record<string, string> {
  return Object.fromEntries(findPlaintextCredentials(entry).map(({ where, value }) => [where, value]));
}

describe("[oper-02d] plain credentials of an entry", () => {
  it.each<[string, JsonObject, Record<string, string>]>([
    ["a variable named like one", { env: { API_KEY: "abc", MODE: "abc" } }, { "env.API_KEY": "abc" }],
    ["a token under any name", { env: { ANY: TOKEN } }, { "env.ANY": TOKEN }],
    ["a header, without its scheme", { headers: { Authorization: "Bearer abc" } }, { "headers.Authorization": "abc" }],
    ["auth", { auth: { type: "bearer", token: "abc" } }, { "auth.token": "abc" }],
    [
      "auth",
      { auth: { type: "client-credentials", clientId: "me", clientSecret: "abc" } },
      { "auth.clientSecret": "abc" },
    ],
    ["an option", { args: ["--token=abc", "-v", "--api-key", "def"] }, { "args[0]": "abc", "args[3]": "def" }],
    ["a pair", { args: ["-e", "X_TOKEN=abc", "-H", "X-Api-Key: def"] }, { "args[1]": "abc", "args[3]": "def" }],
    ["an address", { url: "https://me:abc@h.example" }, { url: "https://me:abc@h.example" }],
    ["a query", { url: "https://h.example/?api_key=abcdef" }, { url: "https://h.example/?api_key=abcdef" }],
    ["the default of a reference", { env: { API_KEY: "${API_KEY:-abc}" } }, { "env.API_KEY": "${API_KEY:-abc}" }],
    ["what looks like a broken reference", { env: { PASSWORD: "a${b" } }, { "env.PASSWORD": "a${b" }],
    ["what is beside a reference", { env: { PASSWORD: "abc${HOME}" } }, { "env.PASSWORD": "abc${HOME}" }],
    [
      "what is beside a reference in a header",
      { headers: { "X-Api-Key": "abc secret://env/HOME", Authorization: "Bearer abc1${X}" } },
      { "headers.X-Api-Key": "abc secret://env/HOME", "headers.Authorization": "Bearer abc1${X}" },
    ],
    [
      "what is beside a reference in an option",
      { args: ["--token=abc${X}", "--api-key", "${X}abc", "-e", "X_TOKEN=abc${X}"] },
      { "args[0]": "--token=abc${X}", "args[2]": "${X}abc", "args[4]": "X_TOKEN=abc${X}" },
    ],
    ["a token beside a reference", { args: [`\${X}/${TOKEN}`] }, { "args[0]": `\${X}/${TOKEN}` }],
  ])("finds %s", (_, entry, expected) => {
    expect(places(entry)).toEqual(expected);
  });

  it.each<[string, JsonObject]>([
    ["a reference", { env: { API_KEY: "secret://env/API_KEY" }, auth: { type: "bearer", token: "${TOKEN}" } }],
    ["a value that holds one", { headers: { Authorization: "Bearer ${TOKEN}" }, url: "https://me:${PW}@h.example" }],
    [
      "what is beside one and no secret",
      {
        env: {
          BASIC_AUTH: "${NAME}:${PASSWORD}",
          DB_PASSWORD: "postgres://me:${PW}@h.example/db",
          GOOGLE_APPLICATION_CREDENTIALS: "${HOME}/.config/key.json",
        },
        headers: { Authorization: "ApiKey ${KEY}", Cookie: "session=${SID}; other=${ID}", "X-Token": "Basic ${X}" },
        args: ["--token=${X}", "-H", "Authorization: Bearer ${X}"],
      },
    ],
    ["a switch", { env: { USE_TOKEN: "true", TOKEN_FILE: "/run/x" } }],
    [
      "what is about a credential",
      { args: ["--token-file", "/x", "-e", "GITHUB_TOKEN"], auth: { type: "oauth", clientId: "abc" } },
    ],
    [
      "an ordinary entry",
      { command: "npx", args: ["-y", "@scope/pkg@1.2.3", "/a/b"], tags: ["secret-ish"], env: { KEYBOARD: "de" } },
    ],
  ])("lets %s pass", (_, entry) => {
    expect(places(entry)).toEqual({});
  });

  it("replaces each where it stands and touches nothing else", () => {
    const entry = {
      env: { API_KEY: "abc", MODE: "x" },
      args: ["-v", "--token=abc"],
      headers: { Authorization: "Bearer abc" },
    };
    expect(replaceCredentials(entry, findPlaintextCredentials(entry), ({ where }) => `<${where}>`)).toEqual({
      env: { API_KEY: "<env.API_KEY>", MODE: "x" },
      args: ["-v", "--token=<args[1]>"],
      headers: { Authorization: "Bearer <headers.Authorization>" },
    });
    expect(entry.env.API_KEY).toBe("abc");
  });
});
