/** Where the servers are that tests run, and config entries for them. */
import { resolve } from "node:path";
import type { ServerEntryInput } from "../../src/model/server-spec.ts";
import { serverFile } from "./bundled-servers.ts";

const misbehavingServer = resolve(import.meta.dirname, "../fixtures/misbehaving-server.mjs");

export const everythingArgs = (transport: "stdio" | "sse" | "streamableHttp"): string[] => [
  serverFile("everything"),
  transport,
];

export const everything = (): ServerEntryInput => ({ command: process.execPath, args: everythingArgs("stdio") });

export const filesystem = (...dirs: string[]): ServerEntryInput => ({
  command: process.execPath,
  args: [serverFile("filesystem"), ...dirs],
});

export const memory = (file: string): ServerEntryInput => ({
  command: process.execPath,
  args: [serverFile("memory")],
  env: { MEMORY_FILE_PATH: file },
});

/** A server that is sound, or ill in the way that `mode` names. */
export const misbehaving = (mode: string, ...args: string[]): ServerEntryInput => ({
  command: process.execPath,
  args: [misbehavingServer, mode, ...args],
});
