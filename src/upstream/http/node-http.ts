/**
 * What the wires use of node:http, without importing it as a module: that evaluates the lazy parts of it as well, which
 * load Node's whole fetch (12 MB and 30 ms).
 */
const http = process.getBuiltinModule("node:http");

export const HttpAgent = http.Agent;
export const httpRequest = http.request;
export const { validateHeaderName, validateHeaderValue } = http;

type Https = typeof import("node:https");

/** Loaded for the first address that needs it: TLS is 4 MB that a hub of local servers never uses. */
export function nodeHttps(): Https {
  return process.getBuiltinModule("node:https");
}
