/** Where the servers are that tests run, and config entries for them. */
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";

const require = createRequire(import.meta.url);

function packageFile(name: string, file: string): string {
  return join(require.resolve(`${name}/package.json`), "..", file);
}

const everythingServer = packageFile("@modelcontextprotocol/server-everything", "dist/index.js");
const filesystemServer = packageFile("@modelcontextprotocol/server-filesystem", "dist/index.js");
const memoryServer = packageFile("@modelcontextprotocol/server-memory", "dist/index.js");
const misbehavingServer = resolve(import.meta.dirname, "../fixtures/misbehaving-server.mjs");

export const everythingArgs = (transport: "stdio" | "sse" | "streamableHttp"): string[] => [
  everythingServer,
  transport,
];

export const everything = (): ServerEntryInput => ({ command: process.execPath, args: everythingArgs("stdio") });

export const filesystem = (...dirs: string[]): ServerEntryInput => ({
  command: process.execPath,
  args: [filesystemServer, ...dirs],
});

export const memory = (file: string): ServerEntryInput => ({
  command: process.execPath,
  args: [memoryServer],
  env: { MEMORY_FILE_PATH: file },
});

/** A server that is sound, or ill in the way that `mode` names. */
export const misbehaving = (mode: string, ...args: string[]): ServerEntryInput => ({
  command: process.execPath,
  args: [misbehavingServer, mode, ...args],
});
