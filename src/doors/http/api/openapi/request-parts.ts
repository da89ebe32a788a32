/** Parameters and body of a route, with the operation's example spread over them. */
import { EXAMPLES } from "../../../../contract/examples.ts";
import { OPERATIONS } from "../../../../contract/operations.ts";
import type { RestRoute } from "../../../../contract/rest.ts";
import { isJsonObject, type JsonObject } from "../../../../model/json.ts";
import type { Components } from "./components.ts";

export interface RequestParts {
  readonly parameters: JsonObject[];
  readonly requestBody?: JsonObject;
}

export function requestParts(route: RestRoute, components: Components): RequestParts {
  const schema = components.input(OPERATIONS[route.operation].input);
  const properties = isJsonObject(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const input: JsonObject = { ...EXAMPLES[route.operation].input };
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const rest = Object.keys(properties).filter((name) => !inPath.includes(name) && name !== "ifMatch");
  const parameters = inPath.map((name) => parameter("path", name, properties[name], { required: true, input }));
  if (Object.hasOwn(properties, "ifMatch")) parameters.push(IF_MATCH);
  if (route.from === "query") {
    const options = (name: string) => ({ required: required.includes(name), input });
    return {
      parameters: [...parameters, ...rest.map((name) => parameter("query", name, properties[name], options(name)))],
    };
  }
  if (route.from === undefined) return { parameters };
  const members = Object.fromEntries(rest.map((name) => [name, properties[name]]));
  const needed = rest.filter((name) => required.includes(name));
  const { schema: bodySchema, example } = bodyOf(route.from, members, needed, input);
  const isRequired = route.from !== "arguments";
  return {
    parameters,
    requestBody: { required: isRequired, content: { "application/json": { schema: bodySchema, example } } },
  };
}

const IF_MATCH: JsonObject = {
  name: "If-Match",
  in: "header",
  description: "The server's `etag`. If its entry is another one by now, nothing is changed and the answer is 412.",
  schema: { type: "string" },
  example: '"3-9f86d081884c7d65"',
};

function parameter(
  place: "path" | "query",
  name: string,
  schema: unknown,
  { required, input }: { readonly required: boolean; readonly input: JsonObject },
): JsonObject {
  const { description, ...rest } = isJsonObject(schema) ? schema : {};
  return {
    name,
    in: place,
    ...(required ? { required } : {}),
    ...(description === undefined ? {} : { description }),
    schema: rest,
    ...(input[name] === undefined ? {} : { example: input[name] }),
  };
}

interface Body {
  readonly schema: JsonObject;
  readonly example: unknown;
}

function bodyOf(
  from: NonNullable<RestRoute["from"]>,
  members: JsonObject,
  required: readonly string[],
  input: JsonObject,
): Body {
  switch (from) {
    case "updates":
      return { schema: asObject(members["updates"]), example: input["updates"] };
    case "entry": {
      const { serverId: _id, ...sent } = members;
      const wrapped = closed({ serverId: members["serverId"], id: members["serverId"], ...sent }, ["config"]);
      const { config, serverId } = input;
      return {
        schema: { anyOf: [sent["config"], wrapped] },
        example: { id: serverId, ...asObject(config) },
      };
    }
    case "arguments": {
      const { args, ...others } = members;
      const description = "Arguments of the tool; `args` is the same.";
      const named = { ...asObject(args), description };
      return {
        schema: closed({ arguments: named, args, ...others }, []),
        example: { arguments: input["args"] },
      };
    }
    default: {
      const example = Object.fromEntries(Object.keys(members).flatMap((name) => given(input, name)));
      return { schema: closed(members, required), example };
    }
  }
}

function closed(properties: JsonObject, required: readonly string[]): JsonObject {
  return {
    type: "object",
    properties,
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
}

function given(input: JsonObject, name: string): [string, unknown][] {
  return input[name] === undefined ? [] : [[name, input[name]]];
}

function asObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}
