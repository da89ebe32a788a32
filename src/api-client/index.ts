export { ToolcribApiError } from "./api-error.ts";
export { type Fetch, type FetchInit, ToolcribClient, type ToolcribClientOptions } from "./toolcrib-client.ts";
export type { ExtraTool, ExtraToolContext, ExtraToolsOptions } from "./extra-tool-host.ts";
export type { LiveConnection, LiveOptions, LiveStatus } from "./live-connection.ts";
export type { CallOptions, ItemOf, ListName, OperationMethods } from "./rest-operations.ts";
export type { CommandOptions } from "./live-connection.ts";
export type { Socket, SocketMaker } from "./hub-socket.ts";
export type { InputOf, OperationName, OutputOf } from "../contract/operations.ts";
export type {
  AnyCommand,
  CommandInput,
  CommandName,
  CommandOutput,
  EventName,
  FieldsOf,
  Hello,
  HubEvent,
  ProgressFrame,
  Reply,
} from "../contract/websocket.ts";
