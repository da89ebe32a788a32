/** Routes of the listener itself: health, what is where, and the OAuth resource metadata. */
import { ToolcribError } from "../../model/errors.ts";
import { sendError, sendJson, sendText } from "./answers.ts";
import type { Entrance } from "./entrance.ts";
import type { HttpExchange, HttpRoute } from "./exchange.ts";
import { METADATA_PATH, resourceMetadata } from "./oauth/resource.ts";
import { answerReadiness, type Readiness } from "./readiness.ts";
import { baseOf } from "./request-path.ts";

interface OwnRoutesOptions {
  readonly readiness: () => Readiness;
  /** A few lines for people who open the address in a browser. */
  readonly index: (() => string) | undefined;
  readonly entrance: () => Entrance;
  /** Whether there is something at this path that wants credentials. */
  readonly isGuarded: (path: string) => boolean;
}

export function ownRoutes({ readiness, index, entrance, isGuarded }: OwnRoutesOptions): HttpRoute[] {
  const routes: HttpRoute[] = [
    page("/healthz", ({ response }) => sendJson(response, 200, { status: "ok" })),
    page("/readyz", ({ response }) => answerReadiness(response, readiness())),
    page(METADATA_PATH, (exchange) => {
      const settings = entrance().http.auth?.oauth;
      const path = exchange.path.slice(METADATA_PATH.length);
      if (settings === undefined || (path !== "" && !isGuarded(path))) throw nothingAt(exchange.path);
      sendJson(exchange.response, 200, resourceMetadata(baseOf(entrance(), exchange.request), path, settings));
    }),
  ];
  if (index !== undefined) routes.push(page("/", ({ response }) => sendText(response, 200, index())));
  return routes;
}

/** A public route that is only read. */
function page(path: string, show: (exchange: HttpExchange) => void): HttpRoute {
  return {
    path,
    access: "public",
    handle: (exchange) => {
      const { method } = exchange.request;
      if (path !== METADATA_PATH && exchange.path !== path) throw nothingAt(exchange.path);
      if (method === "GET" || method === "HEAD") show(exchange);
      else refuseMethod(exchange, ["GET", "HEAD"]);
    },
  };
}

export function refuseMethod({ request, response }: HttpExchange, allowed: readonly string[]): void {
  const error = new ToolcribError("invalid_arguments", `${request.method} is not possible here.`, {
    hint: `Possible: ${allowed.join(", ")}.`,
  });
  sendError(response, error, { status: 405, headers: { allow: allowed.join(", ") } });
}

export function nothingAt(path: string, hint?: string): ToolcribError {
  return new ToolcribError("not_found", `There is nothing at ${path}.`, { hint });
}
