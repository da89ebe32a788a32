/** What the agent says of itself. */
import { type AuthMethod, type InitializeResponse, PROTOCOL_VERSION } from "@agentclientprotocol/sdk/unstable";
import type { ToolcribError } from "../../model/errors.ts";
import { VERSION } from "../../model/version.ts";
import { errorText } from "./request-error.ts";

const AUTH_METHOD = "model-key";

/** What `authenticate` is called with for a model. */
export function authMethodId(id: string | undefined): string {
  return id === undefined ? AUTH_METHOD : `${AUTH_METHOD}:${id}`;
}

export interface AgentFacts {
  readonly seesImages: boolean;
  /** Models that cannot be used yet, and why; an undefined id is the one that sessions begin with. */
  readonly unusable: readonly { readonly id: string | undefined; readonly error: ToolcribError }[];
}

/** There is one version; a client that asks for another one decides whether it can go on with this one. */
export function initializeResponse({ seesImages, unusable }: AgentFacts): InitializeResponse {
  return {
    protocolVersion: PROTOCOL_VERSION,
    agentInfo: { name: "toolcrib", title: "Toolcrib", version: VERSION },
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: seesImages, audio: false, embeddedContext: true },
      mcpCapabilities: { http: true, sse: true, acp: true },
      sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
    },
    authMethods: unusable.map(({ id, error }) => authMethod(id, error)),
  };
}

function authMethod(model: string | undefined, missing: ToolcribError): AuthMethod {
  const variable = missing.details?.["variable"];
  const name = typeof variable === "string" ? `Set ${variable}` : "Set up the model";
  return {
    id: authMethodId(model),
    name: model === undefined ? name : `${name} for ${model}`,
    description: errorText(missing.toObject()),
  };
}
