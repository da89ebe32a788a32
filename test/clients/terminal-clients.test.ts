import { describe, expect, it } from "vitest";
import { writeServer } from "../../src/clients/server-entries.ts";
import { client, fileOf, LINUX } from "./fixture.ts";

/** As the programs themselves write them: qwen 0.24, kilo 7.7, droid 0.215, grok 1.0, kimi 2.1 and pi 0.87 were run. */
describe("[whole-37a] Qwen Code, Kilo, Droid, Kimi, pi and Grok", () => {
  it.each([
    ["qwen-code", "QWEN_HOME", "/opt/x/settings.json"],
    ["kimi", "KIMI_CODE_HOME", "/opt/x/mcp.json"],
    ["pi", "PI_CODING_AGENT_DIR", "/opt/x/mcp.json"],
    ["grok", "GROK_HOME", "/opt/x/config.toml"],
  ])("%s: %s moves its folder", (id, variable, file) => {
    const moved = { ...LINUX, env: { [variable]: "/opt/x" } };
    expect(fileOf(client(id), "user", moved).path).toBe(file);
    expect(client(id).traces(moved)).toEqual(["/opt/x"]);
    expect(client(id).skillDirs(moved, "user")[0]).toBe("/opt/x/skills");
  });

  it.each([
    ["qwen-code", { httpUrl: "http://127.0.0.1:4700/mcp", headers: { Authorization: "Bearer ${T}" } }],
    ["kilo", { type: "remote", headers: { Authorization: "Bearer {env:T}" } }],
    ["droid", { type: "http", headers: { Authorization: "Bearer ${T}" } }],
    ["kimi", { url: "http://127.0.0.1:4700/mcp", bearerTokenEnvVar: "T" }],
    ["pi", { headers: { Authorization: "Bearer ${T}" } }],
    ["grok", { headers: { Authorization: "Bearer ${T}" } }],
  ])("%s: the token of a hub is in a variable", (id, entry) => {
    const url = "http://127.0.0.1:4700/mcp";
    expect(writeServer(client(id), "toolcrib", { url, transport: "http", token: { env: "T" } })).toMatchObject(entry);
  });

  it.each([
    ["qwen-code", "qwen-cli-mcp-client-toolcrib"],
    ["kilo", "kilo"],
    ["droid", "factory-cli"],
    ["kimi", "kimi-code"],
    ["pi", "pi-mcp-toolcrib"],
    ["grok", "grok-shell-toolcrib"],
  ])("%s says that it is %s", (id, name) => {
    expect(client(id).saysName.test(name)).toBe(true);
  });
});
