/** A remote server that leads a login to this machine. Its name is a public one to the command, and leads to a server of the test. */
import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { sendJson } from "../doubles/http.ts";
import { MAIN } from "../support/main-program.ts";
import { type Finished, workspace } from "./run-cli.ts";

const OPENSSL = "openssl";
const dir = mkdtempSync(join(tmpdir(), "toolcrib-oauth-reach-"));
const [key, cert, names] = [join(dir, "key.pem"), join(dir, "cert.pem"), join(dir, "names.mjs")];

/** The machine of the test resolves no such names; the command is given a resolver that does. */
const RESOLVER = `
import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
const { lookup } = dns;
dns.lookup = (name, options, callback) => {
  if (!name.endsWith(".evil.test")) return lookup(name, options, callback);
  const address = name.startsWith("lan.") ? "10.255.255.1" : "127.0.0.1";
  const found = options?.all === true ? [[{ address, family: 4 }]] : [address, 4];
  process.nextTick(callback ?? options, null, ...found);
};
syncBuiltinESMExports();
`;

/** What the remote server answers; \`SELF\` is its own address. */
interface Answers {
  challenge?: string;
  resource?: object;
  issuer?: object;
  redirect?: string;
}

let remote: Server;
let recorder: Server;
let connections = 0;
let answers: Answers = {};
let asked: string[] = [];

const portOf = (server: Server): number => (server.address() as AddressInfo).port;
const self = (): string => `https://mcp.evil.test:${portOf(remote)}`;

function respond(request: IncomingMessage, response: ServerResponse): void {
  const { pathname } = new URL(request.url ?? "/", self());
  asked.push(pathname);
  const { challenge, resource, issuer, redirect } = answers;
  if (redirect !== undefined && pathname.startsWith("/.well-known/")) {
    response.writeHead(302, { location: redirect }).end();
  } else if (pathname.startsWith("/.well-known/oauth-protected-resource") && resource !== undefined) {
    sendJson(response, 200, { resource: `${self()}/mcp`, ...resource });
  } else if (pathname === "/.well-known/oauth-authorization-server" && issuer !== undefined) {
    const endpoint = (path: string): string => `${self()}${path}`;
    sendJson(response, 200, {
      issuer: self(),
      authorization_endpoint: endpoint("/authorize"),
      token_endpoint: endpoint("/token"),
      registration_endpoint: endpoint("/register"),
      response_types_supported: ["code"],
      code_challenge_methods_supported: ["S256"],
      ...issuer,
    });
  } else if (pathname === "/register") {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString("utf8")));
    request.on("end", () => sendJson(response, 201, { ...(JSON.parse(body) as object), client_id: "toolcrib" }));
  } else if (pathname === "/mcp") {
    sendJson(response, 401, {}, challenge === undefined ? {} : { "www-authenticate": challenge });
  } else sendJson(response, 404, {});
}

const cannot = spawnSync(OPENSSL, ["version"]).status !== 0;

describe.skipIf(cannot)("[trust-18f] a login at a remote server", () => {
  beforeAll(async () => {
    writeFileSync(names, RESOLVER);
    const subject = ["-subj", "/CN=evil.test", "-addext", "subjectAltName=DNS:*.evil.test", "-days", "2"];
    const request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, ...subject];
    execFileSync(OPENSSL, request, { stdio: "pipe" });
    const tls = { key: readFileSync(key), cert: readFileSync(cert) };
    remote = createTlsServer(tls, respond).listen(0, "127.0.0.1");
    recorder = createServer((socket) => {
      connections += 1;
      socket.on("error", () => {}).destroy();
    }).listen(0, "127.0.0.1");
    await Promise.all([once(remote, "listening"), once(recorder, "listening")]);
  });
  beforeEach(() => {
    [connections, asked, answers] = [0, [], {}];
  });
  afterAll(() => {
    remote?.close();
    recorder?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  /** A person follows the printed address to its redirect, with a code of the remote server. */
  async function login(auth: object = {}): Promise<Finished> {
    const place = workspace();
    place.configure({ srv: { url: `${self()}/mcp`, restart: false, auth: { type: "oauth", ...auth } } });
    const env = { NODE_EXTRA_CA_CERTS: cert };
    const args = ["--config", place.configFile, "auth", "login", "srv", "--no-browser"];
    const { child, finished } = place.start(args, { env, nodeArgs: ["--import", names], main: MAIN });
    let seen = "";
    const look = (chunk: Buffer): void => {
      seen += String(chunk);
      const found = /(https:\S+\/authorize\S+)\n/.exec(seen)?.[1];
      if (found === undefined) return;
      seen = "";
      const { searchParams } = new URL(found);
      const back = new URL(searchParams.get("redirect_uri") ?? "");
      back.searchParams.set("code", "a-code");
      back.searchParams.set("state", searchParams.get("state") ?? "");
      void fetch(back);
    };
    child.stdout?.on("data", look);
    child.stderr?.on("data", look);
    return finished;
  }

  const inside = (): string[] => [
    `https://127.0.0.1:${portOf(recorder)}`,
    `https://localhost:${portOf(recorder)}`,
    `https://[::ffff:127.0.0.1]:${portOf(recorder)}`,
    `https://near.evil.test:${portOf(recorder)}`,
  ];

  it("does not follow its metadata to this machine: challenge, authorization server, endpoints, redirects", async () => {
    const own = { authorization_servers: [self()] };
    for (const [index, at] of inside().entries()) {
      const spelled: Answers = { resource: { authorization_servers: [at] } };
      const others: Answers[] = [
        { challenge: `Bearer resource_metadata="${at}/metadata"` },
        { resource: own, issuer: { registration_endpoint: `${at}/register` } },
        { resource: own, issuer: { token_endpoint: `${at}/token` } },
        { redirect: `${at}/metadata` },
      ];
      for (const attack of index === 0 ? [spelled, ...others] : [spelled]) {
        answers = attack;
        const { code, stdout, stderr } = await login();
        expect(asked).toContain("/mcp");
        expect(connections, `${at} ${JSON.stringify(attack)}\n${stdout}${stderr}`).toBe(0);
        if (attack.redirect === undefined) {
          expect([code, stderr]).toEqual([
            1,
            expect.stringMatching(/not asked for a login: it is the machine that Toolcrib runs on/),
          ]);
        } else expect(code).not.toBe(0);
      }
    }
  });

  it("does not follow it to private and metadata addresses either, nor a person's browser", async () => {
    const own = { authorization_servers: [self()] };
    for (const [attack, word] of [
      [{ resource: { authorization_servers: ["https://10.255.255.1"] } }, "a private address"],
      [{ resource: { authorization_servers: ["https://lan.evil.test"] } }, "a private address"],
      [{ resource: { authorization_servers: ["https://169.254.169.254"] } }, "hands out a machine's credentials"],
      [{ resource: own, issuer: { authorization_endpoint: "https://10.255.255.1/authorize" } }, "a private address"],
    ] as const) {
      answers = attack;
      const { code, stderr } = await login();
      expect([code, stderr]).toEqual([1, expect.stringContaining(word)]);
    }
  });

  it("[trust-18g] follows it to where the config says that the login is", async () => {
    const issuer = `https://near.evil.test:${portOf(recorder)}`;
    answers = { resource: { authorization_servers: [issuer] } };
    const { stderr } = await login({ issuer });
    expect(stderr).not.toContain("is not asked for a login");
    expect(connections).toBeGreaterThan(0);
  });
});
