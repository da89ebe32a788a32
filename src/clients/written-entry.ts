/** The forms of a written entry that several clients share. */
import type { JsonObject } from "../model/json.ts";
import type { WrittenServer } from "./client.ts";

export type CommandServer = Extract<WrittenServer, { readonly command: string }>;
export type AddressServer = Extract<WrittenServer, { readonly url: string }>;

export function isCommand(server: WrittenServer): server is CommandServer {
  return "command" in server;
}

/** `{command, args, env?}`, and undefined for a server with a working directory: started elsewhere it would go wrong. */
export function commandEntry(server: CommandServer): JsonObject | undefined {
  return server.cwd === undefined ? commandEntryWithCwd(server) : undefined;
}

/** `{command, args, env?, cwd?}`. */
export function commandEntryWithCwd(server: CommandServer): JsonObject {
  return {
    command: server.command,
    args: [...server.args],
    ...someOf("env", server.env),
    ...(server.cwd === undefined ? {} : { cwd: server.cwd }),
  };
}

/** `{url, headers?}`. */
export function addressEntry(server: AddressServer): JsonObject {
  return { url: server.url, ...someOf("headers", server.headers) };
}

/** The record under its key, unless it is empty. */
export function someOf(key: string, record: Readonly<Record<string, string>> | undefined): JsonObject {
  return record === undefined || Object.keys(record).length === 0 ? {} : { [key]: { ...record } };
}
