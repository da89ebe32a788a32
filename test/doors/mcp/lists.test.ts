import { describe, expect, it } from "vitest";
import { listBytes } from "../../../src/doors/mcp/shared-requests.ts";
import type { ToolCapability } from "../../../src/model/capability.ts";

function tool(name: string, description: string): ToolCapability {
  return {
    kind: "tool",
    name,
    origin: { source: "s", name: "own" },
    fingerprint: name,
    definition: { name: "own", description, inputSchema: { type: "object" } },
  };
}

describe("[gate-13a] the bytes of a list", () => {
  it("are the definitions under their public names, made once", () => {
    const list = [tool("s__a", "A."), tool("s__b", "B.")];
    const bytes = listBytes(list);
    expect(JSON.parse(bytes.toString())).toMatchObject([
      { name: "s__a", description: "A." },
      { name: "s__b", description: "B." },
    ]);
    expect(listBytes(list)).toBe(bytes);
  });

  it("[gate-08e] are kept up to a size, those used last", () => {
    const big = tool("s__big", "z".repeat(8 * 1024 * 1024));
    const lists = Array.from({ length: 12 }, () => [big]);
    const [often = [], once = []] = lists;
    const [first, second] = [listBytes(often), listBytes(once)];
    for (const list of lists) {
      listBytes(list);
      // Compared like this because a matcher would look at every byte to say what differs.
      expect(listBytes(often) === first).toBe(true);
    }
    const again = listBytes(once);
    expect(again === second).toBe(false);
    expect(again.equals(second)).toBe(true);
  });
});
