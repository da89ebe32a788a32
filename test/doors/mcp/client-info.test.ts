import { describe, expect, it } from "vitest";
import { clientOf } from "../../../src/doors/mcp/view-scope.ts";
import { clientInfoOf, clientLabel } from "../../../src/model/client-info.ts";

describe("[counter-04b] what a client says of itself", () => {
  it.each([
    [undefined, undefined],
    ["cursor", undefined],
    [{}, undefined],
    [{ name: "" }, undefined],
    [{ name: 7 }, undefined],
    [{ name: "\u202e\u0000" }, undefined],
    [{ name: "cursor" }, { name: "cursor" }],
    [
      { name: "cursor", version: 2, title: " Cursor " },
      { name: "cursor", title: "Cursor" },
    ],
    [
      { name: "a\u001b[31mb\u202ec", version: "1\n2" },
      { name: "a [31mb c", version: "1 2" },
    ],
  ])("%j", (said, expected) => {
    expect(clientInfoOf(said)).toEqual(expected);
  });

  it("is cut", () => {
    const info = clientInfoOf({ name: "n".repeat(5000), version: "1".repeat(5000), title: "t".repeat(5000) });
    expect([info?.name.length, info?.version?.length, info?.title?.length]).toEqual([100, 100, 100]);
  });

  it("does not replace what the transport knows", () => {
    const caller = { key: "stdio-1", owner: true, scopes: new Set<never>() };
    const origin = { caller, scope: {}, peer: { transport: "stdio", pid: 7 } };
    expect(clientOf(origin, { name: "x", transport: "http", pid: 1 })).toEqual({
      name: "x",
      transport: "stdio",
      pid: 7,
    });
    expect(clientOf(origin, undefined)).toBeUndefined();
  });

  it("is shown with its version", () => {
    expect([clientLabel({ name: "x" }), clientLabel({ name: "x", version: "1.2" })]).toEqual(["x", "x 1.2"]);
  });
});
