import { describe, expect, it } from "vitest";
import type { LookUpAll } from "../../../src/base/network-address.ts";
import { LoginAddressPolicy, type NamedAddresses } from "../../../src/secrets/oauth/oauth-fetch.ts";

const NAMES: Readonly<Record<string, string>> = {
  "mcp.test": "1.1.1.1",
  "sso.test": "8.8.8.8",
  "mcp.corp": "10.0.0.1",
  "sso.corp": "10.0.0.2",
  "both.corp": "10.0.0.1 1.1.1.1",
  "near.test": "127.0.0.1",
  "meta.test": "169.254.169.254",
};
const lookup: LookUpAll = (name, _options, callback) => {
  const addresses = NAMES[name]?.split(" ").map((address) => ({ address, family: 4 }));
  if (addresses === undefined) callback(Object.assign(new Error("no such name"), { code: "ENOTFOUND" }), []);
  else callback(null, addresses);
};

/** Whether a server leads there, with the look-up of the connection. */
async function leads(server: string, target: string, named?: NamedAddresses): Promise<boolean> {
  const reach = new LoginAddressPolicy(new URL(server), { named, lookup });
  try {
    const url = new URL(target);
    const judged = await reach.admit(url);
    if (NAMES[url.hostname] === undefined) return true;
    return await new Promise((resolve) => judged(url.hostname, { all: true }, (error) => resolve(error === null)));
  } catch {
    return false;
  }
}

const PUBLIC = ["https://1.1.1.1/", "https://sso.test/"];
const PRIVATE = ["https://10.0.0.9/", "https://192.168.1.1/", "https://[fd00::1]/", "https://sso.corp/"];
const MACHINE = [
  "https://127.0.0.1/",
  "https://localhost/",
  "https://2130706433/",
  "https://[::1]/",
  "https://0.0.0.0/",
];
const NEVER = ["https://169.254.169.254/", "https://meta.test/", "https://169.254.1.1/", "https://[fe80::1]/"];

describe("[trust-18f] where a login leads", () => {
  it.each<[server: string, leadsTo: string[], not: string[]]>([
    ["https://mcp.test/mcp", PUBLIC, [...PRIVATE, ...MACHINE, ...NEVER, "https://near.test/", "http://sso.test/"]],
    ["https://mcp.corp/mcp", [...PUBLIC, ...PRIVATE], [...MACHINE, ...NEVER, "https://near.test/"]],
    ["https://10.0.0.1/mcp", [...PUBLIC, ...PRIVATE], [...MACHINE, ...NEVER]],
    ["https://both.corp/mcp", PUBLIC, [...PRIVATE, ...MACHINE, ...NEVER]],
    // A name that leads to this machine is not this machine: whoever owns it can let it lead anywhere.
    ["https://near.test/mcp", PUBLIC, [...PRIVATE, ...MACHINE, ...NEVER]],
    ["https://gone.test/mcp", PUBLIC, [...PRIVATE, ...MACHINE, ...NEVER]],
    [
      "http://127.0.0.1:8080/mcp",
      [...PUBLIC, ...PRIVATE, ...MACHINE, "http://127.0.0.1:9/"],
      [...NEVER, "http://sso.test/"],
    ],
  ])("%s", async (server, leadsTo, not) => {
    for (const target of leadsTo) expect([target, await leads(server, target)]).toEqual([target, true]);
    for (const target of not) expect([target, await leads(server, target)]).toEqual([target, false]);
  });

  it("[trust-18g] to the server itself, and to what the config names, with its port", async () => {
    expect(await leads("https://near.test:8443/mcp", "https://near.test:8443/.well-known/x")).toBe(true);
    expect(await leads("https://near.test:8443/mcp", "https://near.test/.well-known/x")).toBe(false);
    const issuer = "https://sso.corp:8443/realm";
    expect(await leads("https://mcp.test/mcp", "https://sso.corp:8443/token", { issuer })).toBe(true);
    expect(await leads("https://mcp.test/mcp", "https://sso.corp/token", { issuer })).toBe(false);
    expect(await leads("https://mcp.test/mcp", "http://127.0.0.1:9/t", { tokenUrl: "http://127.0.0.1:9/t" })).toBe(
      true,
    );
    expect(await leads("https://mcp.test/mcp", "http://sso.test/t", { tokenUrl: "http://sso.test/t" })).toBe(false);
  });
});
