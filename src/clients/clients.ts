/** Every client, in the order in which they are shown. */
import {
  amp,
  claudeDesktop,
  cline,
  copilotCli,
  cursor,
  geminiCli,
  junie,
  kiro,
  lmStudio,
  openclaw,
  opencode,
  vscode,
  windsurf,
  zed,
} from "./json-clients.ts";
import { continueDev, goose } from "./yaml-clients.ts";
import { claudeCode } from "./claude-code.ts";
import { LruMap } from "../base/maps.ts";
import type { AgentClient } from "./agent-client.ts";
import { codex } from "./codex.ts";
import { droid, grok, kilo, kimi, pi, qwenCode } from "./terminal-clients.ts";

export const CLIENTS: readonly AgentClient[] = [
  claudeDesktop,
  claudeCode,
  cursor,
  vscode,
  windsurf,
  cline,
  zed,
  codex,
  geminiCli,
  opencode,
  kiro,
  junie,
  goose,
  lmStudio,
  amp,
  continueDev,
  openclaw,
  copilotCli,
  qwenCode,
  kilo,
  droid,
  kimi,
  pi,
  grok,
];

export function clientById(id: string): AgentClient | undefined {
  return CLIENTS.find((client) => client.id === id);
}

/** Names change with clients and not with calls, and a call asks for one: two dozen patterns are a noticeable part of it. */
const bySaidName = new LruMap<string, { readonly client: AgentClient | undefined }>(64);

/** By `clientInfo.name`. Anyone can use any name. */
export function clientThatSays(name: string): AgentClient | undefined {
  let known = bySaidName.get(name);
  if (known === undefined) {
    known = { client: CLIENTS.find(({ saysName }) => saysName.test(name)) };
    bySaidName.set(name, known);
  }
  return known.client;
}
