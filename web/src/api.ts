/** The one place where the page talks to the hub. */
import {
  type CommandInput,
  type CommandOptions,
  type CommandOutput,
  type HubEvent,
  type InputOf,
  type LiveConnection,
  type LiveStatus,
  type OperationName,
  type OutputOf,
  type ProgressFrame,
  ToolcribClient,
} from "../../src/api-client/index.ts";
import { BASE } from "./base.ts";
import { keepPageKey, keptPageKey } from "./page-key.ts";

export type Progress = ProgressFrame["progress"];

const client = new ToolcribClient({ url: location.origin + BASE, pageKey: keptPageKey, name: "toolcrib-page" });

export function run<Name extends OperationName>(
  name: Name,
  input: InputOf<Name>,
  options: { readonly signal?: AbortSignal } = {},
): Promise<OutputOf<Name>> {
  return client.call(name, input, options);
}

const eventListeners = new Set<(event: HubEvent) => void>();
const statusListeners = new Set<() => void>();
let connection: LiveConnection | undefined;

/** One connection for the whole page, opened at the first need. */
export function openLive(): LiveConnection {
  connection ??= client.live({
    onEvent: (event) => {
      for (const listener of [...eventListeners]) listener(event);
    },
    onStatus: () => {
      for (const listener of [...statusListeners]) listener();
    },
  });
  return connection;
}

/** Over the WebSocket, where progress comes back and giving up reaches the tool. */
export function runLive<Name extends OperationName>(
  name: Name,
  input: CommandInput<Name>,
  options: CommandOptions = {},
): Promise<CommandOutput<Name>> {
  return openLive().command(name, input, options);
}

export function connectionStatus(): LiveStatus {
  return connection?.status ?? "connecting";
}

export function onConnectionStatus(listener: () => void): () => void {
  statusListeners.add(listener);
  return () => statusListeners.delete(listener);
}

export function onHubEvent(listener: (event: HubEvent) => void): () => void {
  eventListeners.add(listener);
  return () => eventListeners.delete(listener);
}

/** The audit log as a file, with the filters of the list. A link would go without the page's key. */
export function exportAudit(filters: Parameters<typeof client.exportAudit>[0]): Promise<Blob> {
  return client.exportAudit(filters);
}

/** Trades the code of the link, or a token, for the page's cookie and its key. */
export async function login(given: Parameters<typeof client.login>[0]): Promise<void> {
  const { pageKey } = await client.login(given);
  keepPageKey(pageKey);
}

export async function logout(): Promise<void> {
  await client.logout();
  keepPageKey(undefined);
}

/** The call that a link of a notice is about, and the answer that it stands for. */
export function readLink(token: string): ReturnType<typeof client.readApprovalLink> {
  return client.readApprovalLink(token);
}

export function answerByLink(token: string): ReturnType<typeof client.answerByLink> {
  return client.answerByLink(token);
}
