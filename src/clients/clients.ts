/** Every client, in the order in which they are shown. */
import { amp } from "./amp.ts";
import { claudeCode } from "./claude-code.ts";
import { claudeDesktop } from "./claude-desktop.ts";
import type { AgentClient } from "./client.ts";
import { cline } from "./cline.ts";
import { codex } from "./codex.ts";
import { continueDev } from "./continue.ts";
import { copilotCli } from "./copilot-cli.ts";
import { cursor } from "./cursor.ts";
import { geminiCli } from "./gemini-cli.ts";
import { goose } from "./goose.ts";
import { junie } from "./junie.ts";
import { kiro } from "./kiro.ts";
import { lmStudio } from "./lm-studio.ts";
import { openclaw } from "./openclaw.ts";
import { opencode } from "./opencode.ts";
import { vscode } from "./vscode.ts";
import { windsurf } from "./windsurf.ts";
import { zed } from "./zed.ts";

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
];

export function clientById(id: string): AgentClient | undefined {
  return CLIENTS.find((client) => client.id === id);
}
