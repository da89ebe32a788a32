/** An operation as an HTTP request. */
import type { InputOf, OperationName, OutputOf } from "../contract/operations.ts";
import { API_PATH, REST_ROUTES, type RestRoute } from "../contract/rest.ts";

export interface RestRequest {
  readonly method: RestRoute["method"];
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** If an operation has several paths, the first one takes every input. */
const ROUTES = new Map<OperationName, RestRoute>(
  REST_ROUTES.toReversed().map((route: RestRoute) => [route.operation, route]),
);

const OPERATION_NAMES: readonly OperationName[] = [...ROUTES.keys()];

export function restRequest(name: OperationName, input: object): RestRequest {
  const route = ROUTES.get(name);
  if (route === undefined) throw new TypeError(`There is no operation ${name}.`);
  const rest = new Map(Object.entries(input).filter(([, value]) => value !== undefined));
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(take(rest, key)));
  const headers: Record<string, string> = {};
  if (rest.has("ifMatch")) headers["if-match"] = quoted(take(rest, "ifMatch"));
  if (route.method === "GET" || route.method === "DELETE") {
    return { method: route.method, path: `${API_PATH}${path}${queryOf(rest)}`, headers };
  }
  const body = route.from === "updates" ? rest.get("updates") : Object.fromEntries(rest);
  const text = route.from === undefined ? {} : { body: JSON.stringify(body) };
  if (route.from !== undefined) headers["content-type"] = "application/json";
  return { method: route.method, path: API_PATH + path, headers, ...text };
}

export function queryOf(fields: Iterable<readonly [string, unknown]>): string {
  const given = [...fields].filter(([, value]) => value !== undefined);
  const query = new URLSearchParams(given.map(([key, value]): [string, string] => [key, String(value)]));
  return given.length === 0 ? "" : `?${query.toString()}`;
}

/** Adds the quotes that HTTP requires, if they are missing. */
function quoted(tag: string): string {
  return tag === "*" || tag.startsWith('"') ? tag : `"${tag}"`;
}

function take(fields: Map<string, unknown>, key: string): string {
  const value = fields.get(key);
  fields.delete(key);
  if (typeof value === "string" && value !== "") return value;
  throw new TypeError(`${key} must be a non-empty string.`);
}

export interface CallOptions {
  readonly signal?: AbortSignal;
}

/** The input object is optional if all its properties are. */
type Arguments<Input> =
  Input extends Record<string, never>
    ? [input?: Input, options?: CallOptions]
    : Partial<Input> extends Input
      ? [input?: Input, options?: CallOptions]
      : [input: Input, options?: CallOptions];

export type OperationMethods = {
  [Name in OperationName]: (...given: Arguments<InputOf<Name>>) => Promise<OutputOf<Name>>;
};

/** Operations that return a page of a list. */
export type ListName = {
  [Name in OperationName]: "cursor" extends keyof InputOf<Name> ? Name : never;
}[OperationName];

/** The entries of such a list. */
export type ItemOf<Name extends ListName> = {
  [Key in keyof OutputOf<Name>]-?: OutputOf<Name>[Key] extends readonly (infer Item)[] ? Item : never;
}[keyof OutputOf<Name>];

abstract class Caller {
  abstract call<Name extends OperationName>(
    name: Name,
    input: InputOf<Name>,
    options?: CallOptions,
  ): Promise<OutputOf<Name>>;
}

for (const name of OPERATION_NAMES) {
  Object.defineProperty(Caller.prototype, name, {
    value(this: Caller, input: InputOf<typeof name> = {}, options: CallOptions = {}) {
      return this.call(name, input, options);
    },
    configurable: true,
    writable: true,
  });
}

/** The loop above defines one method per operation on its prototype. */
export const OperationCaller = Caller as unknown as abstract new () => Caller & OperationMethods;
