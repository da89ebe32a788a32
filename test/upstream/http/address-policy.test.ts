import type { LookupAddress } from "node:dns";
import { networkInterfaces } from "node:os";
import { afterEach, describe, expect, it } from "vitest";
import { HttpClient } from "../../../src/upstream/http/http-client.ts";
import type { LookUpAll } from "../../../src/base/network-address.ts";
import { addressPolicy, type AddressPolicyOptions } from "../../../src/upstream/http/address-policy.ts";
import { serve } from "./http-bench.ts";

/** Names and what they resolve to, one answer after the other. */
function names(table: Readonly<Record<string, readonly string[]>>): LookUpAll & { asked: string[] } {
  const asked: string[] = [];
  const lookup: LookUpAll = (hostname, _options, callback) => {
    const answers = table[hostname] ?? [];
    const turn = Math.min(asked.filter((name) => name === hostname).length, answers.length - 1);
    asked.push(hostname);
    const addresses = (answers[turn] ?? "").split(" ").map((address): LookupAddress => {
      return { address, family: address.includes(":") ? 6 : 4 };
    });
    process.nextTick(callback, null, addresses);
  };
  return Object.assign(lookup, { asked });
}

/** Of a client without further rights. */
const reachOf = (options: Partial<AddressPolicyOptions> = {}): ReturnType<typeof addressPolicy> =>
  addressPolicy({ allowHosts: [], localClient: false, ...options });

const resolve = (host: string, addresses: string, options: Partial<AddressPolicyOptions> = {}): Promise<unknown> => {
  const reach = reachOf({ lookup: names({ [host]: [addresses] }), ...options });
  const url = new URL(`https://${host}/mcp`);
  return new Promise((done, fail) => {
    reach.check(url);
    reach.lookup(url)(host, { all: true }, (error, found) => (error ? fail(error) : done(found)));
  });
};
const denied = { code: "denied", details: { permanent: true, sent: false } };

describe("[agent-01e] the reach of a client's servers", () => {
  it("judges names by what they resolve to, and uses only what passes", async () => {
    expect(await resolve("a.test", "1.1.1.1")).toEqual([{ address: "1.1.1.1", family: 4 }]);
    for (const address of ["10.0.0.1", "169.254.169.254", "::ffff:192.168.0.1", "fd00::1", "0.0.0.0"]) {
      await expect(resolve("a.test", address)).rejects.toMatchObject(denied);
    }
    expect(await resolve("a.test", "10.0.0.1 1.1.1.1")).toEqual([{ address: "1.1.1.1", family: 4 }]);
    await expect(resolve("metadata.google.internal", "1.1.1.1")).rejects.toMatchObject(denied);
  });

  it("judges addresses that are written out, which nobody looks up", () => {
    const { check } = reachOf({ allowHosts: ["10.1.0.0/16"] });
    for (const host of ["10.0.0.1", "0x0a000001", "167772161", "[fd00:ec2::254]", "[::ffff:10.2.0.1]", "169.254.1.1"]) {
      expect(() => check(new URL(`https://${host}/`)), host).toThrow(expect.objectContaining(denied));
    }
    for (const host of ["1.1.1.1", "10.1.2.3", "[::ffff:10.1.2.3]", "name.test"]) check(new URL(`https://${host}/`));
  });

  it("takes plain http to hosts that the operator named and to allowed private addresses only", () => {
    const { allowsPlain } = reachOf({ allowHosts: ["10.1.0.0/16", "wiki.test", "*.corp.test", "1.1.1.1"] });
    const hosts = ["10.1.2.3", "wiki.test", "10.2.0.1", "a.corp.test", "1.1.1.1", "other.test"];
    expect(hosts.filter((host) => allowsPlain(new URL(`http://${host}/`)))).toEqual(["10.1.2.3", "wiki.test"]);
  });

  it("lets through what the operator allows: names, suffixes, addresses, networks", async () => {
    const allowHosts = ["Intranet.test", "*.corp.test", "10.9.0.1", "192.168.4.0/24", "fd12::/16"];
    const passes = async (host: string, address: string): Promise<boolean> =>
      resolve(host, address, { allowHosts }).then(
        () => true,
        () => false,
      );
    for (const [host, address] of [
      ["intranet.test", "10.0.0.5"],
      ["a.corp.test", "172.16.0.1"],
      ["x.test", "10.9.0.1"],
      ["x.test", "192.168.4.77"],
      ["x.test", "fd12:0:1::1"],
    ] as const) {
      expect(await passes(host, address), host).toBe(true);
    }
    for (const [host, address] of [
      ["corp.test", "10.0.0.5"],
      ["evilcorp.test", "10.0.0.5"],
      ["x.test", "10.9.0.2"],
      ["x.test", "192.168.5.1"],
      // A machine's credentials have to be meant: no name and no network opens them.
      ["intranet.test", "169.254.169.254"],
    ] as const) {
      expect(await passes(host, address), host).toBe(false);
    }
    const metadata = ["169.254.0.0/16", "169.254.169.254"];
    await expect(resolve("x.test", "169.254.169.254", { allowHosts: metadata.slice(0, 1) })).rejects.toMatchObject(
      denied,
    );
    await resolve("x.test", "169.254.169.254", { allowHosts: metadata });
  });

  it("allows this machine to who may start programs on it, and tells of it", async () => {
    const told: string[] = [];
    const options = { localClient: true, onLoopback: (host: string): void => void told.push(host) };
    await resolve("localhost", "127.0.0.1", options);
    reachOf(options).check(new URL("http://[::1]:80/"));
    expect(new Set(told)).toEqual(new Set(["localhost", "::1"]));
  });
});

const SPELLINGS = [
  "127.0.0.1",
  "127.9.9.9",
  "127.1",
  "2130706433",
  "0x7f000001",
  "0177.0.0.1",
  "0.0.0.0",
  "0",
  "localhost",
  "LOCALHOST.",
  "a.localhost",
  "[::1]",
  "[::]",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[::127.0.0.1]",
];

describe("[trust-04a] this machine, for a client without further rights", () => {
  it("is refused in every spelling, at every port alike", () => {
    const ofMachine = Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address));
    const written = ofMachine.map((address) => (address.includes(":") ? `[${address}]` : address));
    for (const host of [...SPELLINGS, ...written]) {
      const [first, ...others] = [1, 80, 4700, 65_535].map((port) => {
        const url = URL.parse(`https://${host}:${port}/mcp`);
        try {
          if (url !== null) reachOf().check(url);
        } catch (error) {
          return error;
        }
        return url;
      });
      if (first === null) continue;
      expect(first, host).toMatchObject(denied);
      for (const other of others) expect(other).toEqual(first);
    }
  });

  it("is refused under every name that leads there, in the words for a name that leads nowhere", async () => {
    const said = async (addresses: string): Promise<unknown> =>
      resolve("a.test", addresses).catch(({ code, message, hint, details }) => ({ code, message, hint, details }));
    const nowhere: LookUpAll = (_name, _options, callback) =>
      callback(Object.assign(new Error("no such name"), { code: "ENOTFOUND" }), []);
    const missing = await resolve("a.test", "", { lookup: nowhere }).catch(({ code, message, hint, details }) => ({
      code,
      message,
      hint,
      details,
    }));
    expect(missing).toMatchObject({ ...denied, message: "a.test has no address that a client's server may be at" });
    for (const address of [
      "127.0.0.1",
      "::1",
      "::ffff:127.0.0.1",
      "0.0.0.0",
      "10.0.0.1",
      "169.254.169.254",
      "fd00::1",
    ]) {
      expect(await said(address), address).toEqual(missing);
    }
    // Who may start programs can ask the network by other means, and is told what is wrong.
    await expect(resolve("a.test", "10.0.0.1", { localClient: true })).rejects.toThrow(/a private address/);
  });

  it("is opened by an address or a name with its port, and by nothing wider", async () => {
    const passes = (url: string, allowHosts: string[]): boolean => {
      try {
        reachOf({ allowHosts }).check(new URL(url));
        return true;
      } catch {
        return false;
      }
    };
    for (const wide of ["127.0.0.1", "localhost", "127.0.0.0/8", "0.0.0.0/0", "::/0", "*.localhost", "127.0.0.1:81"]) {
      for (const host of ["127.0.0.1", "localhost", "a.localhost", "[::1]", "0.0.0.0"]) {
        expect(passes(`http://${host}:80/`, [wide]), `${host} by ${wide}`).toBe(false);
      }
    }
    expect(passes("http://127.0.0.1:8080/mcp", ["127.0.0.1:8080"])).toBe(true);
    expect(passes("http://localhost:8080/mcp", ["localhost:8080"])).toBe(true);
    expect(passes("http://[::1]:8080/mcp", ["[::1]:8080"])).toBe(true);
    expect(passes("https://127.0.0.1/mcp", ["127.0.0.1:443"])).toBe(true);
    const resolved = { allowHosts: ["near.test:443"] };
    expect(await resolve("near.test", "127.0.0.1", resolved)).toEqual([{ address: "127.0.0.1", family: 4 }]);
    await expect(resolve("near.test", "127.0.0.1", { allowHosts: ["near.test"] })).rejects.toMatchObject(denied);
  });

  it("[trust-04b] never gives away a port of Toolcrib's own, not even by name", () => {
    const isGuarded = (port: number): boolean => port === 4700;
    const url = new URL("http://127.0.0.1:4700/mcp");
    const allowHosts = ["127.0.0.1:4700"];
    expect(() => reachOf({ allowHosts, isGuarded }).check(url)).toThrow(expect.objectContaining(denied));
    const own = reachOf({ localClient: true, isGuarded });
    expect(() => own.check(url)).toThrow(/belongs to Toolcrib itself/);
    own.check(new URL("http://127.0.0.1:4701/mcp"));
  });
});

describe("[agent-01e] requests to a client's server", () => {
  let client: HttpClient | undefined;
  afterEach(() => client?.destroy());
  const get = (url: string): Promise<unknown> =>
    client?.request({ method: "GET", url: new URL(url), headers: {} }).then(({ status, body }) => {
      void body.discard();
      return status;
    }) ?? Promise.reject(new Error("no client"));

  it("connect to the address that was judged, on every new connection", async () => {
    const bench = await serve((_seen, response) => void response.writeHead(200, { connection: "close" }).end("{}"));
    const { port } = new URL(bench.url);
    // The name means this machine at first, and then something else.
    const lookup = names({ "rebind.test": ["127.0.0.1", "169.254.169.254"] });
    client = new HttpClient({ reach: reachOf({ localClient: true, lookup }) });
    expect(await get(`http://rebind.test:${port}/mcp`)).toBe(200);
    await expect(get(`http://rebind.test:${port}/mcp`)).rejects.toMatchObject(denied);
    expect(lookup.asked).toEqual(["rebind.test", "rebind.test"]);
  });

  it("do not follow a redirect to where they may not go", async () => {
    let target = "";
    const bench = await serve(
      (_seen, response) => void response.writeHead(307, { location: target, connection: "close" }).end(),
    );
    const { port } = new URL(bench.url);
    const lookup = names({ "a.test": ["127.0.0.1", "10.0.0.1"] });
    client = new HttpClient({ reach: reachOf({ localClient: true, lookup }) });
    // Another origin is never followed; the same one is judged anew.
    target = `http://10.0.0.1:${port}/secret`;
    await expect(get(`${bench.url}/mcp`)).rejects.toMatchObject({ message: expect.stringContaining("not followed") });
    target = "/elsewhere";
    await expect(get(`http://a.test:${port}/mcp`)).rejects.toMatchObject(denied);
    expect(bench.seen).toHaveLength(2);
  });
});
