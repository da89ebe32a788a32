/** What the API is, for programs and for people. It holds nothing of this hub, so that nobody needs a token for it. */
import { API_PATH } from "../../../../contract/rest.ts";
import { sendJsonText } from "../../answers.ts";
import type { HttpExchange, HttpRoute } from "../../exchange.ts";
import { nothingAt, refuseMethod } from "../../own-routes.ts";
import { bodyTag, isKnown } from "./etag.ts";

export const DOCUMENT_PATH = `${API_PATH}/openapi.json`;
export const DOCS_PATH = "/api/docs";

interface Texts {
  readonly document: string;
  readonly page: string;
  readonly policy: string;
}

export function docsRoutes(version: string): HttpRoute[] {
  let made: Promise<Texts> | undefined;
  const texts = (): Promise<Texts> => (made ??= makeTexts(version));
  return [
    readOnly(DOCUMENT_PATH, async ({ request, response }) => {
      const { document } = await texts();
      const etag = bodyTag(document);
      if (isKnown(request, etag)) response.writeHead(304, { etag }).end();
      else sendJsonText(response, 200, document, { etag });
    }),
    readOnly(DOCS_PATH, async ({ response }) => {
      const { page, policy } = await texts();
      response.writeHead(200, {
        "content-type": "text/html; charset=utf-8",
        "content-length": Buffer.byteLength(page),
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "cache-control": "no-cache",
      });
      response.end(page);
    }),
  ];
}

/** Made when somebody first asks for it. */
async function makeTexts(version: string): Promise<Texts> {
  const [{ openApiDocument }, { docsPage, DOCS_POLICY }] = await Promise.all([
    import("../openapi/document.ts"),
    import("../openapi/docs-page.ts"),
  ]);
  const document = openApiDocument(version);
  return { document: JSON.stringify(document), page: docsPage(document), policy: DOCS_POLICY };
}

function readOnly(path: string, show: (exchange: HttpExchange) => Promise<void>): HttpRoute {
  return {
    path,
    access: "public",
    async handle(exchange) {
      const { method } = exchange.request;
      if (exchange.path !== path) throw nothingAt(exchange.path);
      if (method === "GET" || method === "HEAD") await show(exchange);
      else refuseMethod(exchange, ["GET", "HEAD"]);
    },
  };
}
