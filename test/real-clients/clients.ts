/** Clients from the package registry, as the suite runs them: once, without a person, with a model on this machine. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** What a client is given: a home that is empty, and the address of the model. */
export interface Ground {
  readonly home: string;
  readonly model: string;
}

export interface OwnServer {
  readonly command: string;
  readonly args: readonly string[];
}

export interface RealClient {
  /** As `toolcrib connect` knows it. */
  readonly id: string;
  readonly package: string;
  /** The program, below `node_modules`. */
  readonly program: string;
  /** Its own file, as someone who uses it has one: the model, and a server under the name `own`. */
  setUp(ground: Ground, own: OwnServer): void;
  /** Besides HOME and PATH. */
  env(ground: Ground): Readonly<Record<string, string>>;
  /** To run a prompt once, with all tools allowed. */
  args(prompt: string): readonly string[];
  /** Whether the model sees what skills there are without a call. */
  readonly showsSkills: boolean;
}

function write(ground: Ground, file: string, content: string | object): void {
  const path = join(ground.home, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof content === "string" ? content : `${JSON.stringify(content, null, 2)}\n`);
}

const claudeCode: RealClient = {
  id: "claude-code",
  package: "@anthropic-ai/claude-code",
  // The package has a script that links it, which is not run.
  program: `@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`,
  setUp: (ground, own) =>
    write(ground, ".claude.json", { hasCompletedOnboarding: true, mcpServers: { own: { type: "stdio", ...own } } }),
  env: ({ model }) => ({
    ANTHROPIC_BASE_URL: model,
    ANTHROPIC_API_KEY: "a-key-0123456789",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
  }),
  args: (prompt) => ["-p", prompt, "--model", "claude-sonnet-4-5", "--allowedTools", "mcp__toolcrib"],
  showsSkills: true,
};

const codex: RealClient = {
  id: "codex",
  package: "@openai/codex",
  program: ".bin/codex",
  setUp: (ground, { command, args }) =>
    write(
      ground,
      ".codex/config.toml",
      `model = "scripted"
model_provider = "scripted"

[model_providers.scripted]
name = "scripted"
base_url = "${ground.model}/v1"
wire_api = "responses"

[mcp_servers.own]
command = ${JSON.stringify(command)}
args = ${JSON.stringify(args)}
`,
    ),
  env: () => ({ OPENAI_API_KEY: "a-key-0123456789" }),
  args: (prompt) => ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt],
  showsSkills: true,
};

const qwenCode: RealClient = {
  id: "qwen-code",
  package: "@qwen-code/qwen-code",
  program: ".bin/qwen",
  setUp: (ground, own) =>
    write(ground, ".qwen/settings.json", {
      security: { auth: { selectedType: "openai" } },
      telemetry: { enabled: false },
      privacy: { usageStatisticsEnabled: false },
      mcpServers: { own },
    }),
  env: ({ model }) => ({
    OPENAI_BASE_URL: `${model}/v1`,
    OPENAI_API_KEY: "a-key-0123456789",
    OPENAI_MODEL: "scripted",
  }),
  args: (prompt) => ["-p", prompt, "--yolo"],
  showsSkills: true,
};

/** What OpenCode has in its file, and its fork Kilo. */
function opencodeConfig(ground: Ground, { command, args }: OwnServer): object {
  return {
    autoupdate: false,
    share: "disabled",
    model: "scripted/scripted",
    small_model: "scripted/scripted",
    provider: {
      scripted: {
        npm: "@ai-sdk/openai-compatible",
        name: "scripted",
        options: { baseURL: `${ground.model}/v1`, apiKey: "a-key-0123456789" },
        models: { scripted: { name: "scripted", tool_call: true } },
      },
    },
    mcp: { own: { type: "local", command: [command, ...args], enabled: true } },
  };
}

const opencode: RealClient = {
  id: "opencode",
  package: "opencode-ai",
  program: `opencode-${process.platform}-${process.arch}/bin/opencode`,
  setUp: (ground, own) => write(ground, ".config/opencode/opencode.json", opencodeConfig(ground, own)),
  env: () => ({ OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1" }),
  args: (prompt) => ["run", prompt],
  showsSkills: true,
};

const kilo: RealClient = {
  id: "kilo",
  package: "@kilocode/cli",
  program: `@kilocode/cli-${process.platform}-${process.arch}/bin/kilo`,
  setUp: (ground, own) => write(ground, ".config/kilo/kilo.json", opencodeConfig(ground, own)),
  env: () => ({ KILO_DISABLE_AUTOUPDATE: "1", KILO_DISABLE_MODELS_FETCH: "1" }),
  args: (prompt) => ["run", prompt],
  showsSkills: true,
};

const kimi: RealClient = {
  id: "kimi",
  package: "@moonshot-ai/kimi-code",
  program: ".bin/kimi",
  setUp: (ground, own) => write(ground, ".kimi-code/mcp.json", { mcpServers: { own } }),
  env: ({ model }) => ({
    KIMI_MODEL_NAME: "scripted",
    KIMI_MODEL_API_KEY: "a-key-0123456789",
    KIMI_MODEL_PROVIDER_TYPE: "openai",
    KIMI_MODEL_BASE_URL: `${model}/v1`,
  }),
  args: (prompt) => ["-p", prompt],
  showsSkills: true,
};

const geminiCli: RealClient = {
  id: "gemini-cli",
  package: "@google/gemini-cli",
  program: ".bin/gemini",
  setUp: (ground, own) =>
    write(ground, ".gemini/settings.json", {
      security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
      privacy: { usageStatisticsEnabled: false },
      general: { disableAutoUpdate: true },
      mcpServers: { own },
    }),
  env: ({ model }) => ({ GOOGLE_GEMINI_BASE_URL: model, GEMINI_API_KEY: "a-key-0123456789" }),
  args: (prompt) => ["-p", prompt, "--yolo"],
  showsSkills: true,
};

const grok: RealClient = {
  id: "grok",
  package: "@xai-official/grok",
  // Compressed in the package, and unpacked by a script of it that is not run.
  program: `@xai-official/grok-${process.platform}-${process.arch}/bin/grok`,
  setUp: (ground, { command, args }) =>
    write(
      ground,
      ".grok/config.toml",
      `[models]
default = "scripted"

[model.scripted]
model = "scripted"
base_url = "${ground.model}/v1"
api_key = "a-key-0123456789"
api_backend = "chat_completions"
context_window = 200000

[mcp_servers.own]
command = ${JSON.stringify(command)}
args = ${JSON.stringify(args)}
`,
    ),
  env: () => ({ GROK_DISABLE_AUTOUPDATER: "1", GROK_TELEMETRY_ENABLED: "0" }),
  args: (prompt) => ["-p", prompt, "-m", "scripted", "--always-approve", "--disable-web-search"],
  showsSkills: true,
};

export const REAL_CLIENTS: readonly RealClient[] = [claudeCode, codex, opencode, kilo, qwenCode, geminiCli, grok, kimi];
