export { ToolcribApiError } from "./api-error.ts";
export { type Fetch, type FetchInit, ToolcribClient, type ToolcribClientOptions } from "./client.ts";
export type { ExtraTool, ExtraToolContext, ExtraToolsOptions } from "./extra-tools.ts";
export type { LiveConnection, LiveOptions, LiveStatus } from "./live.ts";
export type { CallOptions, ItemOf, ListName, OperationMethods } from "./operation-methods.ts";
export type { CommandOptions } from "./pending-commands.ts";
export type { Socket, SocketMaker } from "./socket.ts";
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
} from "../contract/socket.ts";
