import { renderDiagnostic } from "../config/diagnostics.ts";
import { Document } from "../config/document.ts";
import { serverWarnings } from "../config/server-rules.ts";
import { isJsonObject } from "../model/json.ts";
import { ServerEntrySchema } from "../model/server-spec.ts";
import type { Output } from "./output.ts";

/** Warns of what is unwise in an entry that was just written, such as a credential in plain text. */
export function warnOfEntry(out: Output, file: string, text: string, id: string): void {
  const document = Document.parse(file, text);
  const servers = isJsonObject(document.value) ? document.value["mcpServers"] : undefined;
  const entry = ServerEntrySchema.safeParse(isJsonObject(servers) ? servers[id] : undefined).data;
  if (entry === undefined) return;
  for (const warning of serverWarnings(document, ["mcpServers", id], entry)) out.warn(renderDiagnostic(warning));
}
