import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseTarget } from "../../../src/doors/http/http-exchange.ts";
import { ToolcribError } from "../../../src/model/errors.ts";
import { place } from "./support.ts";

describe("[gate-08d] the path of a request", () => {
  it.each([
    ["/", "/"],
    ["/mcp", "/mcp"],
    ["/mcp/", "/mcp"],
    ["/mcp?servers=a,b&tags=%2e%2e", "/mcp"],
    ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource/mcp"],
    ["/mcp/re%20viewer", "/mcp/re viewer"],
    ["/%6dcp", "/mcp"],
    ["/mcp/r%C3%A9sum%C3%A9", "/mcp/résumé"],
    ["/a/..b/c", "/a/..b/c"],
    ["/a/50%25", "/a/50%"],
  ])("%s is %s", (target, path) => {
    expect(parseTarget(target).path).toBe(path);
  });

  it.each([
    "",
    "*",
    "mcp",
    "http://localhost/mcp",
    "//evil.example/mcp",
    "/mcp//x",
    "/mcp/../admin",
    "/mcp/./x",
    "/..",
    "/a/.. ",
    "/a/%20../b",
    "/a/%20",
    "/mcp/%2e%2e/admin",
    "/mcp/.%2E/admin",
    "/mcp%2fadmin",
    "/mcp%5Cadmin",
    "/mcp\\admin",
    "/mcp/%00",
    "/mcp/%0d%0aX:1",
    "/mcp/%7f",
    "/mcp/%252e%252e/admin",
    "/mcp/%ff",
    "/mcp/%",
    "/mcp/%zz",
    "/mcp#x",
  ])("%s is refused", (target) => {
    expect(() => parseTarget(target)).toThrow(ToolcribError);
  });

  it("never gives a path that climbs, whatever is sent", () => {
    const piece = fc.constantFrom("/", ".", "..", "%2e", "%2f", "%5c", "\\", "a", "%25", "2e", "?", "%", "\0", " ");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        let path: string;
        try {
          ({ path } = parseTarget(`/${pieces.join("")}`));
        } catch (error) {
          expect(error).toBeInstanceOf(ToolcribError);
          return;
        }
        expect(path.startsWith("/")).toBe(true);
        expect(path).not.toMatch(/(^|\/)\.{1,2}(\/|$)|\/\/|\\|\0|%[0-9a-f]{2}/i);
        expect(new URL(path.replaceAll("%", "%25").replaceAll("?", "%3f"), "http://h").pathname.split("/").length).toBe(
          path.split("/").length,
        );
      }),
      { numRuns: 2000 },
    );
  });

  it("at the listener a trick is 400, and never reaches another route", async () => {
    const { open, ask } = await place();
    for (const target of ["/mcp/../admin", "/mcp/%2e%2e/admin", "http://localhost/mcp", "//mcp", "/mcp/%2fx"]) {
      const raw = (await open()).send(`GET ${target} HTTP/1.1`, "Host: localhost", "Connection: close", "", "");
      expect(await raw.ended(), target).toMatch(/^HTTP\/1\.1 400 [\s\S]*"code":"invalid_arguments"/);
    }
    expect((await ask("/mcpx")).status).toBe(404);
    expect((await ask("/mcp/x/y?q=1")).json<object>()).toMatchObject({ path: "/mcp/x/y", query: [["q", "1"]] });
  });
});
