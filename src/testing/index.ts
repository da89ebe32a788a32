/** `toolcrib/testing`: what tests of programs that build on Toolcrib need. */
export { type ScriptedModel, type ScriptedModelOptions, startScriptedModel } from "./model/scripted-model.ts";
export type {
  GivenResult,
  ModelMessage,
  ModelRequest,
  OfferedTool,
  ProtocolName,
  RequestedCall,
  RequestImage,
} from "./model/model-request.ts";
export {
  type AnswerTurn,
  call,
  calls,
  contextTooLong,
  type ErrorTurn,
  overloaded,
  rateLimited,
  type Scenario,
  type ScriptedCall,
  type ScriptedUsage,
  text,
  type Turn,
} from "./model/scenario.ts";
export { type FakeServer, type FakeServerOptions, startFakeServer } from "./fake-server.ts";
export type { FakeCall, FakeTool, FakeTools, RunFakeTool } from "./fake-server.ts";
export { type InMemoryHub, inMemoryHub } from "./in-memory-hub.ts";
export { ManualClock } from "./manual-clock.ts";
