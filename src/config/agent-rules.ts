import { isIP } from "node:net";
import type { AgentConfig, ModelSetting, SessionsConfig } from "../model/agent-config.ts";
import { isLoopback } from "../model/loopback.ts";
import { isPlainText, looksLikeCredential } from "../secrets/looks-like-secret.ts";
import type { ConfigPath } from "./config-path.ts";
import type { Diagnostic } from "./diagnostics.ts";
import type { Document } from "./document.ts";

/** Keys of models that are written out. No message holds a value. */
export function agentWarnings(document: Document, { model, models }: AgentConfig): Diagnostic[] {
  const settings: (readonly [ConfigPath, ModelSetting | undefined])[] = [
    [["agent", "model"], model],
    ...models.map((each, index) => [["agent", "models", index], each] as const),
  ];
  return settings.flatMap(([path, setting]) =>
    plainCredentials(setting).map((at) =>
      document.report([...path, ...at], {
        severity: "warning",
        code: "plain_credential",
        message: "a credential is written as plain text",
        hint: "use a reference such as ${NAME} or secret://env/NAME",
      }),
    ),
  );
}

function plainCredentials(setting: ModelSetting | undefined): ConfigPath[] {
  if (setting === undefined || typeof setting === "string") return [];
  const { apiKey, headers = {} } = setting;
  const key = apiKey !== undefined && isPlainText(apiKey) ? [["apiKey"]] : [];
  const named = Object.entries(headers).filter(([name, value]) => looksLikeCredential(name) && isPlainText(value));
  return [...key, ...named.map(([name]) => ["headers", name])];
}

/** An entry that can match nothing: whoever wrote it believes that it allows something. */
export function sessionsProblems(document: Document, { allowHosts }: SessionsConfig): Diagnostic[] {
  return allowHosts.flatMap((entry, index) => {
    const hint = wrongHost(entry);
    return hint === undefined
      ? []
      : [
          document.report(["sessions", "allowHosts", index], {
            severity: "error",
            code: "wrong_value",
            message: `found ${JSON.stringify(entry.slice(0, 100))}; allowed is a name or an address, with or without a port, *.suffix, or a network such as 10.1.0.0/16`,
            hint,
          }),
        ];
  });
}

/** What is wrong with the entry; undefined if it can match something. */
function wrongHost(entry: string): string | undefined {
  const [, host, port] = /^(\[[^\]]+\]|[^:/*]+):(\d{1,5})$/.exec(entry.trim()) ?? [];
  if (host !== undefined) return isHostPattern(host) && Number(port) <= 65_535 ? undefined : "without scheme and path";
  if (isLoopback(entry.trim().replace(/^::1$/, "[::1]")))
    return "a server of Toolcrib's own machine is named with its port: 127.0.0.1:8080";
  return isHostPattern(entry) ? undefined : "without scheme and path";
}

const LABEL = "[a-z\\d_](?:[a-z\\d_-]{0,61}[a-z\\d_])?";
const NAME = new RegExp(`^(?:\\*\\.)?${LABEL}(?:\\.${LABEL})*\\.?$`, "i");

function isHostPattern(entry: string): boolean {
  const host = entry.trim().replace(/^\[(.*)\]$/, "$1");
  if (isIP(host) !== 0) return true;
  const [, network = "", prefix = ""] = /^(.+)\/(\d{1,3})$/.exec(host) ?? [];
  const family = isIP(network);
  if (family !== 0) return Number(prefix) <= (family === 4 ? 32 : 128);
  // What ends in a number would be read as an address, and is none.
  return NAME.test(host) && !/(?:^|\.)\d+\.?$/.test(host);
}
