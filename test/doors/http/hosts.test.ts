import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { hostname } from "node:os";
import { describe, expect, it } from "vitest";
import { hostRules, isLoopbackHost, isWildcard, redirectBaseOf } from "../../../src/doors/http/hosts.ts";
import { config, place } from "./support.ts";

const auth = { tokens: [{ token: "a-token-of-enough-length" }] };

describe("[gate-08d] which Host is accepted", () => {
  it.each<[bind: string, accepted: string[], refused: string[]]>([
    [
      "127.0.0.1",
      ["localhost", "localhost:1", "LocalHost:4700", "127.0.0.1:4700", "[::1]:4700", "[0:0:0:0:0:0:0:1]", "localhost."],
      [
        "evil.example",
        "evil.example:4700",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "a@localhost",
        "localhost, evil.example",
        "localhost/evil",
        "localhost:port",
        "127.0.0.2",
        "10.0.0.1",
        "",
        " localhost",
      ],
    ],
    ["::1", ["[::1]:80", "localhost"], ["::1", "[::2]", "evil.example"]],
    ["10.1.2.3", ["10.1.2.3", "10.1.2.3:4700"], ["localhost", "127.0.0.1", "10.1.2.4", "evil.example"]],
    ["0.0.0.0", ["10.1.2.3:4700", "[fe80::1]", "localhost", hostname()], ["evil.example", "10.1.2.3.evil.example"]],
    ["::", ["10.1.2.3:4700", "[fe80::1]:1"], ["evil.example"]],
  ])("bound to %s", (host, accepted, refused) => {
    const rules = hostRules(config({ host, auth }));
    for (const each of accepted) expect(rules.acceptsHost(each), each).toBe(true);
    for (const each of refused) expect(rules.acceptsHost(each), each).toBe(false);
  });

  it("takes what publicUrl and allowedHosts name", () => {
    const rules = hostRules(
      config({ publicUrl: "https://Tools.Example.com:8443/crib", allowedHosts: ["crib", "[FE80::1]"] }),
    );
    for (const each of ["tools.example.com", "tools.example.com:9", "CRIB:4700", "[fe80::1]"]) {
      expect(rules.acceptsHost(each), each).toBe(true);
    }
    expect(rules.acceptsHost("example.com")).toBe(false);
  });

  it("knows what only this machine reaches", () => {
    for (const host of ["127.0.0.1", "127.1.2.3", "localhost", "::1", "[::1]", "0:0:0:0:0:0:0:1"]) {
      expect(isLoopbackHost(host), host).toBe(true);
    }
    for (const host of [
      "0.0.0.0",
      "::",
      "[::]",
      "10.0.0.1",
      "example.com",
      "localhost.example.com",
      "::ffff:10.0.0.1",
    ]) {
      expect(isLoopbackHost(host), host).toBe(false);
    }
    for (const host of ["0.0.0.0", "::", "[::]", "0:0:0:0:0:0:0:0"]) expect(isWildcard(host), host).toBe(true);
    expect(isWildcard("10.0.0.0")).toBe(false);
  });
});

describe("[gate-08d] which Origin is accepted", () => {
  it("[trust-14a] its own, where the request goes to, and what is listed", () => {
    const cors = ["https://app.example.com", "vscode-webview://abc", "http://localhost:6274"];
    const rules = hostRules(config({ cors: cors.slice(0, 2), allowedOrigins: cors.slice(2) }));
    for (const [origin, host] of [
      ["http://localhost:4700", "localhost:4700"],
      ["http://127.0.0.1:4700", "127.0.0.1:4700"],
      ["http://[::1]:4700", "[0:0:0:0:0:0:0:1]:4700"],
      ["http://localhost", "localhost"],
      ["http://localhost", "localhost:80"],
      ["https://localhost", "localhost"],
      ["http://localhost:6274", "127.0.0.1:4700"],
      ["https://app.example.com", "localhost:4700"],
      ["HTTPS://APP.example.com", "localhost:4700"],
      ["vscode-webview://abc", "localhost:4700"],
    ] as const) {
      expect(rules.acceptsOrigin(origin, host), origin).toBe(true);
    }
    for (const origin of [
      "null",
      "",
      "*",
      "http://localhost",
      "http://localhost:3000",
      "http://localhost:47000",
      "https://localhost",
      "http://127.0.0.1:4700",
      "http://[::1]:4700",
      "http://127.0.0.2:4700",
      "http://app.localhost:4700",
      "https://evil.example",
      "https://app.example.com.evil.example",
      "https://app.example.com:8443",
      "http://app.example.com",
      "http://localhost.evil.example:4700",
      "http://localhost:4700/path",
      "http://a@localhost:4700",
      "file://localhost",
      "vscode-webview://other",
    ]) {
      expect(rules.acceptsOrigin(origin, "localhost:4700"), origin).toBe(false);
    }
  });

  it("elsewhere that of publicUrl, whatever a proxy writes into Host", () => {
    const rules = hostRules(config({ host: "10.1.2.3", auth, publicUrl: "https://tools.example.com:8443/crib" }));
    expect(rules.acceptsOrigin("http://localhost:6274", "10.1.2.3:4700")).toBe(false);
    for (const host of ["10.1.2.3:4700", "tools.example.com", "tools.example.com:8443"]) {
      expect(rules.acceptsOrigin("https://tools.example.com:8443", host)).toBe(true);
      expect(rules.acceptsOrigin("https://tools.example.com:9443", host)).toBe(false);
    }
  });
});

describe("[gate-08d] at the listener", () => {
  it("a wrong Host is refused before anything else, also at public paths and without a token", async () => {
    const { ask } = await place({ auth });
    for (const path of ["/mcp", "/healthz", "/nowhere"]) {
      const answer = await ask(path, { headers: { host: "evil.example" } });
      expect(answer.status, path).toBe(403);
      expect(answer.json().error.code).toBe("denied");
      expect(answer.headers["www-authenticate"]).toBeUndefined();
    }
  });

  it("a wrong Origin is refused, and told nothing that a browser would hand on", async () => {
    const { ask } = await place();
    const answer = await ask("/mcp", { headers: { origin: "https://evil.example" } });
    expect(answer.status).toBe(403);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    const preflight = await ask("/mcp", {
      method: "OPTIONS",
      headers: { origin: "https://evil.example", "access-control-request-method": "POST" },
    });
    expect(preflight.status).toBe(403);
    expect((await ask("/mcp", { headers: { origin: "null" } })).status).toBe(403);
  });

  it("an accepted Origin gets the headers that a browser needs, with errors too", async () => {
    const { ask } = await place({ auth, cors: ["https://app.example.com"] });
    const headers = { origin: "https://app.example.com" };
    const refused = await ask("/mcp", { headers });
    expect(refused.status).toBe(401);
    expect(refused.headers["access-control-allow-origin"]).toBe("https://app.example.com");
    expect(refused.headers["access-control-allow-credentials"]).toBeUndefined();
    expect(refused.headers["vary"]).toBe("Origin");
    for (const name of ["mcp-session-id", "www-authenticate", "mcp-protocol-version", "retry-after"]) {
      expect(refused.headers["access-control-expose-headers"]).toContain(name);
    }
    const preflight = await ask("/mcp", {
      method: "OPTIONS",
      headers: {
        ...headers,
        "access-control-request-method": "DELETE",
        "access-control-request-headers": "authorization, mcp-param-city",
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers["access-control-allow-methods"]).toContain("DELETE");
    expect(preflight.headers["access-control-allow-headers"]).toBe("authorization, mcp-param-city");
    const without = await ask("/mcp", { token: "a-token-of-enough-length" });
    expect(without.status).toBe(200);
    expect(without.headers["access-control-allow-origin"]).toBeUndefined();
  });

  it("echoes no header names that are none", async () => {
    const { ask } = await place({ cors: ["http://localhost:1"] });
    const answer = await ask("/mcp", {
      method: "OPTIONS",
      headers: { origin: "http://localhost:1", "access-control-request-headers": "a, b: c" },
    });
    expect(answer.headers["access-control-allow-headers"]).toBeUndefined();
  });

  it.each(["Host: localhost", "Origin: http://localhost", "Authorization: Bearer a"])(
    "a second %s is refused, whatever the first says",
    async (header) => {
      const { open } = await place();
      const first = header.startsWith("Host") ? [] : [header.toUpperCase().replace(/:.*/, ": http://localhost")];
      const raw = (await open()).send(
        "GET /mcp HTTP/1.1",
        "Host: localhost",
        ...first,
        header,
        "Connection: close",
        "",
        "",
      );
      const answer = await raw.ended();
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer).toContain("more than once");
    },
  );

  it("a request without a Host is refused, in HTTP/1.0 too", async () => {
    const { open } = await place();
    expect(await (await open()).send("GET /healthz HTTP/1.1", "Connection: close", "", "").ended()).toMatch(
      /^HTTP\/1\.1 400 /,
    );
    expect(await (await open()).send("GET /healthz HTTP/1.0", "", "").ended()).toMatch(/^HTTP\/1\.1 403 /);
  });
});

describe("[sound-01a] where browsers may bring a code", () => {
  const request = (host: string, remoteAddress: string): IncomingMessage => {
    const message = new IncomingMessage(new Socket());
    message.headers.host = host;
    Object.defineProperties(message.socket, { remoteAddress: { value: remoteAddress }, localPort: { value: 4700 } });
    return message;
  };

  it.each([
    ["localhost:4700", "127.0.0.1", true],
    ["127.0.0.1:4700", "::ffff:127.0.0.1", true],
    ["[::1]:4700", "::1", true],
    ["localhost:4700", "10.1.2.9", false],
    ["127.0.0.1:4700", "::ffff:10.1.2.9", false],
    ["[::1]:4700", "fe80::1", false],
    ["localhost:4701", "127.0.0.1", false],
    ["10.1.2.3:4700", "127.0.0.1", false],
  ])("%s of a caller at %s: %s", (host, address, isTaken) => {
    const base = redirectBaseOf(config({ host: "0.0.0.0", auth }), request(host, address));
    expect(base).toBe(isTaken ? `http://${host}` : undefined);
  });

  it("a name of the config is taken from anywhere", () => {
    const http = config({ host: "0.0.0.0", auth, allowedHosts: ["crib"] });
    expect(redirectBaseOf(http, request("crib:4700", "10.1.2.9"))).toBe("http://crib:4700");
  });
});
