/** One request and its answer, as a route gets it: checked, and with its sender known. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Caller, Scope } from "../../model/caller.ts";
import { readBody } from "./body.ts";
import type { HandedOn } from "./cluster/handed-on.ts";
import type { Target } from "./target.ts";

export interface HttpExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Decoded and checked; without a slash at its end. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly caller: Caller;
  /** Rejects with ToolcribError: `too_large`, or `cancelled` if the client went away. */
  readBody(): Promise<Buffer>;
  /** Answers 403 with the `WWW-Authenticate` that belongs to a missing scope. */
  refuseScope(scope: Scope): void;
  /** Lets another node of the cluster answer. Absent without a cluster, and where a node has handed it on already. */
  readonly handOn?: ((node: string) => Promise<HandedOn>) | undefined;
}

/** A request to speak another protocol on the same connection, whose sender is known and may. */
export interface HttpUpgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** What came after the request already. */
  readonly head: Buffer;
  readonly query: URLSearchParams;
  readonly caller: Caller;
  /** Address of the hub as this client knows it. */
  readonly base: string;
  /** Whether its sender would be let in now. */
  stillAdmitted(): boolean;
}

export interface HttpRoute {
  /** `/mcp` takes `/mcp/…` too; the longest path that fits counts. */
  readonly path: string;
  /** `any`: whoever has a scope at all; what is asked for says which one it needs. */
  readonly access: Scope | "any" | "public";
  /** What it throws or rejects with is answered as an error, if nothing was answered yet. */
  handle(exchange: HttpExchange): void | Promise<void>;
  /** Takes the connection over. Without it such requests are refused. */
  upgrade?(upgrade: HttpUpgrade): void;
}

export interface ExchangeParts {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly target: Target;
  readonly caller: Caller;
  readonly bodyBytes: number;
  readonly refuseScope: (scope: Scope) => void;
  readonly handOn?: ((exchange: HttpExchange, node: string) => Promise<HandedOn>) | undefined;
}

/** Shared, as nobody changes the query of a request. */
const NO_QUERY = new URLSearchParams();

export class Exchange implements HttpExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly caller: Caller;
  readonly refuseScope: (scope: Scope) => void;
  readonly handOn: HttpExchange["handOn"];
  readonly #search: string;
  readonly #bodyBytes: number;
  #query: URLSearchParams | undefined;
  #body: Promise<Buffer> | undefined;

  constructor({ request, response, target, caller, bodyBytes, refuseScope, handOn }: ExchangeParts) {
    this.request = request;
    this.response = response;
    this.path = target.path;
    this.caller = caller;
    this.refuseScope = refuseScope;
    this.handOn = handOn && ((node) => handOn(this, node));
    this.#search = target.search;
    this.#bodyBytes = bodyBytes;
  }

  /** Made when it is first asked for: most requests have none. */
  get query(): URLSearchParams {
    return (this.#query ??= this.#search === "" ? NO_QUERY : new URLSearchParams(this.#search));
  }

  /** Kept only where it may have to be handed on after it was read. */
  readBody(): Promise<Buffer> {
    if (this.handOn === undefined) return readBody(this.request, this.#bodyBytes);
    return (this.#body ??= readBody(this.request, this.#bodyBytes));
  }
}

export class RouteTable {
  /** Longest first. */
  readonly #routes: readonly HttpRoute[];

  constructor(routes: readonly HttpRoute[]) {
    this.#routes = routes.toSorted((a, b) => b.path.length - a.path.length);
  }

  find(path: string): HttpRoute | undefined {
    return this.#routes.find((route) => covers(route.path, path));
  }

  /** Paths that want credentials. */
  guarded(): string[] {
    return this.#routes.flatMap(({ path, access }) => (access === "public" ? [] : [path]));
  }
}

/** The root stands for itself only. */
function covers(own: string, path: string): boolean {
  return path === own || (own !== "/" && path.startsWith(own) && path.charCodeAt(own.length) === 0x2f);
}
