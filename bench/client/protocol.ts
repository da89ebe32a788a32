/** The load client: the same for every subject, by hand, in the one process of the bench. */

export interface Answer {
  readonly id?: string | number | null;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export type Params = Readonly<Record<string, unknown>>;

export interface McpClient {
  /** Resolves with the answer, an error answer included. Rejects if there is none. */
  request(method: string, params?: Params, signal?: AbortSignal): Promise<Answer>;
  close(): Promise<void>;
}

export type Era = "legacy" | "modern";

export const CLIENT_INFO = { name: "toolcrib-bench", version: "1.0.0" };
export const LEGACY_VERSION = "2025-06-18";
export const MODERN_VERSION = "2026-07-28";

export function initializeParams(): Params {
  return { protocolVersion: LEGACY_VERSION, capabilities: {}, clientInfo: CLIENT_INFO };
}
