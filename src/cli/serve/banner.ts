/** What `serve` says when it is up. */
import type { Cluster } from "../../cluster/cluster.ts";
import type { HttpListener } from "../../doors/http/listener.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import { VERSION } from "../../model/version.ts";
import type { Output } from "../output.ts";
import { clientSnippets } from "./client-configs.ts";

export interface Served {
  readonly listener: Pick<HttpListener, "url" | "loginLink">;
  readonly config: LoadedConfig;
  readonly needsToken: boolean;
  /** That this hub is a node of. */
  readonly cluster?: Pick<Cluster, "name" | "node"> | undefined;
  /** What a person types for `toolcrib`. */
  readonly command: string;
}

export function addresses({ listener: { url } }: Served): Record<string, string> {
  return {
    page: `${url}/`,
    mcp: `${url}/mcp`,
    sse: `${url}/sse`,
    api: `${url}/api/v1`,
    ws: `${url.replace(/^http/, "ws")}/ws`,
    approvals: `${url}/api/v1/approvals`,
    metrics: `${url}/metrics`,
    health: `${url}/healthz`,
  };
}

export function printBanner(out: Output, served: Served): void {
  const { listener, config, needsToken, cluster, command } = served;
  const { mcp = "", sse = "", health = "", metrics = "" } = addresses(served);
  const row = (name: string, text: string): void => out.line(`  ${name.padEnd(10)} ${text}`);
  out.line(`${out.paint("bold", `Toolcrib ${VERSION}`)} at ${listener.url}`);
  out.line("");
  // Whoever reads a log would be the operator with it.
  if (out.isLive) {
    row("Page", `${listener.loginLink()}   (works once)`);
    row("", `${command} login   prints another link`);
  } else row("Page", `${listener.url}/   (${command} login   prints a link that opens it)`);
  row("MCP", `${mcp}   (one role: ${mcp}/<role>)`);
  row("MCP, SSE", sse);
  row("API", `${listener.url}/api/docs`);
  row("Health", `${health}, ${listener.url}/readyz, ${metrics}`);
  row("Approve", `${command} approve`);
  row(
    "Config",
    config.file === null ? "none found; `toolcrib add` makes one" : `${config.file} (changes are picked up)`,
  );
  if (config.project !== undefined) row("Project", `${config.project.file} (trusted changes are picked up)`);
  if (cluster !== undefined) row("Cluster", `${cluster.name}; this is the node ${cluster.node.name}`);
  if (needsToken) row("Access", "with a token of http.auth");
  out.line("");
  out.line("Paste into your client:");
  const mayStart = cluster === undefined;
  for (const { client, text } of clientSnippets({ url: mcp, needsToken, configFile: config.file, mayStart })) {
    out.line("");
    out.line(`  ${out.paint("dim", client)}`);
    out.line(`  ${text}`);
  }
  out.line("");
}

/** One line for each server when it is up, or has failed; those on their way say nothing. */
export function serverLine(out: Output, { id, state, toolCount, lastError, hint }: ServerInfo): string | undefined {
  const name = id.padEnd(14);
  if (state === "ready")
    return `  ${out.paint("green", "ready ")}  ${name} ${toolCount} ${toolCount === 1 ? "tool" : "tools"}`;
  if (state === "failed") {
    const advice = hint === undefined ? "" : ` ${hint}`;
    return `  ${out.paint("red", "failed")}  ${name} ${lastError ?? ""}${advice}`.replaceAll("\n", " ");
  }
  return undefined;
}
