import { resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { describe, expect, it } from "vitest";

describe("[oper-06a] the client as a browser gets it", () => {
  it("is small: no schemas, nothing of Node, nothing of the hub", async () => {
    const bundle = await rolldown({
      input: resolve(import.meta.dirname, "../../src/api-client/index.ts"),
      platform: "browser",
    });
    const { output } = await bundle.generate({ format: "esm", minify: true });
    await bundle.close();
    const [chunk] = output;
    expect(output).toHaveLength(1);
    const modules = chunk.moduleIds.map((id) => id.slice(id.indexOf("/src/")));
    expect(modules.filter((id) => !id.startsWith("/src/api-client/"))).toEqual(["/src/contract/rest.ts"]);
    expect(chunk.imports).toEqual([]);
    expect(gzipSync(chunk.code).length).toBeLessThan(6 * 1024);
  });
});
