/** ACP's `mcpServers` array: stdio entries without `type`, env and headers as lists of name and value. */
import type { DialectRead, EntryReader } from "./entry.ts";
import { readServerList } from "./list.ts";

export function readAcp(list: readonly unknown[], path: readonly string[], reader: EntryReader): DialectRead {
  return reader.finish(readServerList(list, path, reader));
}
