/** A registry of one small package, so that npm can be run without the network: its files under one exact version. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

export interface NpmRegistry {
  readonly url: string;
  /** The `authorization` headers that it was sent. */
  readonly tokens: string[];
  /** How often the package itself was fetched. */
  readonly downloads: () => number;
  stop(): void;
}

export interface RegistryOptions {
  /** How long the package itself takes. */
  readonly delayMs?: number;
  /** The package itself does not come before this. */
  readonly held?: Promise<void>;
  /** Speaks https with these, as PEM. */
  readonly tls?: { readonly key: string; readonly cert: string };
  /** Instead of an answer: this status. */
  readonly status?: number;
  /** How long its install script takes, if it is run. */
  readonly scriptMs?: number;
}

/** @param program The package's only program. */
export async function startRegistry(
  name: string,
  version: string,
  program: string,
  { delayMs = 0, held = Promise.resolve(), tls, status, scriptMs = 0 }: RegistryOptions = {},
): Promise<NpmRegistry> {
  const dir = mkdtempSync(join(tmpdir(), "toolcrib-registry-"));
  const bin = { [name]: basename(program) };
  mkdirSync(join(dir, "package"));
  // The script would leave a mark in the image.
  const scripts = {
    postinstall: `node -e "setTimeout(() => require('fs').writeFileSync('ran', ''), ${scriptMs})"`,
  };
  writeFileSync(join(dir, "package/package.json"), JSON.stringify({ name, version, type: "module", bin, scripts }));
  const source = readFileSync(program, "utf8");
  writeFileSync(
    join(dir, "package", basename(program)),
    source.startsWith("#!") ? source : `#!/usr/bin/env node\n${source}`,
  );
  execFileSync("tar", ["-C", dir, "-czf", join(dir, "package.tgz"), "package"]);
  const archive = readFileSync(join(dir, "package.tgz"));
  rmSync(dir, { recursive: true });

  const tokens: string[] = [];
  let downloads = 0;
  const answer: RequestListener = (request, response) => {
    tokens.push(request.headers.authorization ?? "");
    if (status !== undefined) {
      response.writeHead(status).end("{}");
      return;
    }
    if (request.url?.endsWith(".tgz") === true) {
      downloads++;
      void held.then(() => setTimeout(() => response.end(archive), delayMs));
      return;
    }
    if (request.url !== `/${name}`) {
      response.writeHead(404).end("{}");
      return;
    }
    const integrity = `sha512-${createHash("sha512").update(archive).digest("base64")}`;
    const dist = { tarball: `${url}${name}/-/${name}-${version}.tgz`, integrity };
    const versions = { [version]: { name, version, bin, scripts, hasInstallScript: true, dist } };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ name, "dist-tags": { latest: version }, versions }));
  };
  const server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A TCP server's address.
  const url = `${tls === undefined ? "http" : "https"}://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return {
    url,
    tokens,
    downloads: () => downloads,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
