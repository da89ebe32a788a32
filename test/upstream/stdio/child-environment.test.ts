import { describe, expect, it } from "vitest";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import {
  childEnvironment,
  credentialsInVariable,
  DEFAULT_INHERITED,
  inheritedVariables,
} from "../../../src/upstream/stdio/child-environment.ts";

const HUB = {
  PATH: "/bin",
  HOME: "/home/me",
  LANG: "C",
  LC_ALL: "C",
  TERM: "xterm",
  NODE_OPTIONS: "--require evil.js",
  LD_PRELOAD: "/evil.so",
  DYLD_INSERT_LIBRARIES: "/evil.dylib",
  NODE_EXTRA_CA_CERTS: "/ca.pem",
  OPENAI_API_KEY: "sk-secret",
  TOOLCRIB_TOKEN: "secret",
  SHELL: "() { evil; }",
};

describe("childEnvironment", () => {
  it("[spine-06c] takes only the minimum from the hub's environment", () => {
    expect(childEnvironment(HUB, {}, "linux")).toEqual({
      PATH: "/bin",
      HOME: "/home/me",
      LANG: "C",
      LC_ALL: "C",
      TERM: "xterm",
    });
  });

  it("[spine-06c] passes what the spec names, and lets it win", () => {
    const named = { PATH: "/own", NODE_OPTIONS: "--max-old-space-size=100", LD_LIBRARY_PATH: "/lib", TOKEN: "t" };
    const environment = childEnvironment(HUB, named, "linux");
    expect(environment).toMatchObject(named);
    expect(environment).not.toHaveProperty("LD_PRELOAD");
  });

  it("keeps what Windows programs need, in any case of letters, once", () => {
    const base = { Path: "C:\\bin", SystemRoot: "C:\\Windows", LD_PRELOAD: "x", ComSpec: "cmd.exe", SECRET: "s" };
    expect(childEnvironment(base, { PATH: "D:\\own" }, "win32")).toEqual({
      PATH: "D:\\own",
      SystemRoot: "C:\\Windows",
      ComSpec: "cmd.exe",
    });
  });
});

const NETWORK = {
  HTTPS_PROXY: "http://proxy.test:3128",
  https_proxy: "http://proxy.test:3128",
  NO_PROXY: "localhost",
  NODE_EXTRA_CA_CERTS: "/ca.pem",
  REQUESTS_CA_BUNDLE: "/ca.pem",
  NPM_CONFIG_REGISTRY: "https://npm.test/",
  npm_config_cafile: "/ca.pem",
  npm_config_userconfig: "/home/me/.npmrc-work",
  "npm_config_@corp:registry": "https://npm.corp.test/",
  UV_DEFAULT_INDEX: "https://pypi.test/simple",
};
const OTHERS = {
  ...HUB,
  "npm_config_//npm.test/:_authToken": "t",
  npm_config_git: "/evil",
  NPM_TOKEN: "t",
  UV_PUBLISH_TOKEN: "t",
  HTTP_PROXY: "",
  ALL_PROXY: "() { evil; }",
};
const ANYONE = { origin: { file: "/toolcrib.json", dialect: "toolcrib" } };
const { NODE_EXTRA_CA_CERTS: _given, ...WITHOUT } = OTHERS;
const base = { ...WITHOUT, ...NETWORK };

describe("inheritedVariables", () => {
  it("[counter-08a] takes proxies, certificate authorities and registries, and nothing else", () => {
    expect(inheritedVariables(ANYONE, { base, named: {}, platform: "linux" })).toEqual(NETWORK);
  });

  it("[counter-08a] the documentation lists every name of the default", () => {
    const page = readFileSync(resolve(import.meta.dirname, "../../../docs/servers.md"), "utf8");
    const listed = DEFAULT_INHERITED.filter((name) => page.includes(`\`${name}\``));
    const inLowerCase = ["http_proxy", "https_proxy", "no_proxy", "all_proxy"];
    expect(DEFAULT_INHERITED.filter((name) => !listed.includes(name))).toEqual(inLowerCase);
  });

  it("[counter-08b] `env` wins, however a name is spelled: programs prefer one spelling or the other", () => {
    const named = { HTTPS_PROXY: "http://own.test:1", npm_config_registry: "https://own.test/" };
    const taken = Object.keys(inheritedVariables(ANYONE, { base, named, platform: "linux" }));
    expect(taken.filter((name) => /https_proxy|npm_config_registry/i.test(name))).toEqual([]);
  });

  it("[counter-08b] a list replaces the default, an empty one passes nothing on, and the server's own comes first", () => {
    const take = (inherit?: string[], hubInherit?: string[]): string[] =>
      Object.keys(inheritedVariables({ ...ANYONE, inherit, hubInherit }, { base, named: {}, platform: "linux" }));
    expect(take([])).toEqual([]);
    expect(take(undefined, [])).toEqual([]);
    expect(take(["OPENAI_API_KEY"], [])).toEqual(["OPENAI_API_KEY"]);
    expect(take(undefined, ["https_proxy", "npm_config_cafile"])).toEqual(["https_proxy", "npm_config_cafile"]);
    // Exactly the name, but for npm, which itself takes any case.
    expect(take(["Https_Proxy"])).toEqual([]);
  });

  it("takes any case of letters on Windows", () => {
    const found = inheritedVariables(ANYONE, {
      base: { Https_Proxy: "http://p.test:1" },
      named: {},
      platform: "win32",
    });
    expect(found).toEqual({ Https_Proxy: "http://p.test:1" });
  });

  it("[counter-08c] a sandbox without network gets nothing, one with network not npm's settings files", () => {
    const take = (sandboxNetwork: "none" | "host", inherit?: string[]): string[] =>
      Object.keys(inheritedVariables({ ...ANYONE, inherit }, { base, named: {}, sandboxNetwork, platform: "linux" }));
    expect(take("none")).toEqual([]);
    expect(take("host")).toEqual(Object.keys(NETWORK).filter((name) => name !== "npm_config_userconfig"));
    expect(take("none", ["NO_PROXY"])).toEqual(["NO_PROXY"]);
  });

  it("[counter-08d] a proxy with a password is not for servers of skills and sessions, unless the user lists it", () => {
    const proxied = { HTTPS_PROXY: "http://me:hunter22@proxy.test:1", NO_PROXY: "localhost" };
    const take = (spec: Parameters<typeof inheritedVariables>[0]): string[] =>
      Object.keys(inheritedVariables(spec, { base: proxied, named: {}, platform: "linux" }));
    const others = [
      { origin: { file: "/skill/SKILL.md", dialect: "skill" } },
      { ...ANYONE, skill: "one" },
      { origin: { file: "session", dialect: "acp" } },
    ];
    expect(take(ANYONE)).toEqual(["HTTPS_PROXY", "NO_PROXY"]);
    for (const spec of others) {
      expect(take(spec)).toEqual(["NO_PROXY"]);
      expect(take({ ...spec, hubInherit: ["HTTPS_PROXY"] })).toEqual(["HTTPS_PROXY"]);
    }
  });

  it.each([
    ["http://me:hunter22@proxy.test:1", ["me:hunter22", "hunter22"]],
    ["me:hunter22@proxy.test:1", ["me:hunter22", "hunter22"]],
    ["http://tok-1234567@index.test/simple", ["tok-1234567"]],
    ["https://a.test/ https://me:hunter22@b.test/", ["me:hunter22", "hunter22"]],
    ["http://proxy.test:1", []],
    ["localhost,127.0.0.1,.corp.test", []],
    ["/etc/ssl/certs/ca.pem", []],
  ])("[counter-08d] finds the credentials in %s", (value, expected) => {
    expect([...new Set(credentialsInVariable(value))]).toEqual(expected);
  });
});
