/** What the suite tells the client of the scenario that it runs, by the environment. */
import type { ServerEntryInput } from "../../src/model/server-spec.ts";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";

/** The suite's own metadata document: it accepts no other. */
const CLIENT_METADATA = "https://conformance-test.local/client-metadata.json";

export interface ToolCall {
  readonly name: string;
  readonly arguments: JsonObject;
}

export interface Scenario {
  readonly auth: Exclude<ServerEntryInput["auth"], undefined>;
  /** Calls that it wants; every tool is called once if it says nothing. */
  readonly calls: readonly ToolCall[];
}

/** A scenario has one tool take back the definition of another, to see what was kept of it. */
export const ECHO = { tool: "json_schema_echo", of: "json_schema_2020_12_tool" };

export function scenarioFrom(env: NodeJS.ProcessEnv): Scenario {
  const context: unknown = JSON.parse(env["MCP_CONFORMANCE_CONTEXT"] ?? "{}");
  const given = isJsonObject(context) ? context : {};
  return { auth: authFrom(env["MCP_CONFORMANCE_SCENARIO"] ?? "", given), calls: callsFrom(given["toolCalls"]) };
}

function authFrom(name: string, context: JsonObject): Scenario["auth"] {
  const id = context["client_id"];
  const secret = context["client_secret"];
  const client = {
    ...(typeof id === "string" ? { clientId: id } : {}),
    ...(typeof secret === "string" ? { clientSecret: secret } : {}),
  };
  if (name === "auth/client-credentials-basic" && typeof id === "string" && typeof secret === "string") {
    return { type: "client-credentials", clientId: id, clientSecret: secret };
  }
  const registered = name.endsWith("cimd") ? { clientMetadataUrl: CLIENT_METADATA } : {};
  return { type: "oauth", ...client, ...registered };
}

function callsFrom(calls: unknown): ToolCall[] {
  if (!Array.isArray(calls)) return [];
  return calls.flatMap((call: unknown) => {
    if (!isJsonObject(call) || typeof call["name"] !== "string") return [];
    return [{ name: call["name"], arguments: isJsonObject(call["arguments"]) ? call["arguments"] : {} }];
  });
}
