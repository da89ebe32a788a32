import { describe, expect, it } from "vitest";
import { workspace } from "./run-cli.ts";

describe("[skill-14d] connect --url", () => {
  it.each([
    ["http://evil.example/mcp", true],
    ["http://192.168.1.4:4700/mcp", true],
    ["http://127.0.0.1:4700/mcp", false],
    ["http://localhost:4700/mcp", false],
    ["https://tools.example/mcp", false],
  ])("%s: warned of as plain http: %s", async (url, isWarned) => {
    const { code, stderr } = await workspace().runHere(["connect", "cursor", "--url", url, "--dry-run"]);
    expect(code).toBe(0);
    expect(stderr.includes("is not encrypted")).toBe(isWarned);
  });
});
