import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { giveFile } from "./client-files.ts";
import { type Workspace, workspace } from "./run-cli.ts";

/** Each in a place of its own, so that a failure says which. */
const SECRETS = ["pw-in-address", "pw-in-flag", "pw-in-query", "pw-in-env", "pw-in-header", "pw-in-comment"];

const SERVERS = {
  db: {
    command: "npx",
    args: ["-y", "server-postgres", "postgres://me:pw-in-address@db.example/x", "--api-key", "pw-in-flag"],
    env: { READABLE: "${DB_NAME}", STORED: "secret://env/DB_PASSWORD", ODD: "pw-in-env" },
  },
  web: { url: "https://web.example/mcp?token=pw-in-query", headers: { "X-Odd": "pw-in-header" } },
};

const CONFIG = JSON.stringify({ mcpServers: SERVERS }, null, 2).replace("{", '{\n  // "env": {"ODD": "pw-in-comment"}');

async function shown(place: Workspace, [command = "", ...args]: readonly string[]): Promise<string> {
  const texts: string[] = [];
  for (const more of [[], ["--json"]]) {
    const { code, stdout, stderr } = await place.runHere([command, "--dry-run", ...more, ...args]);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/\S/)]);
    texts.push(stdout, stderr);
  }
  return texts.join("\n");
}

function expectMasked(text: string): void {
  for (const secret of SECRETS) expect(text).not.toContain(secret);
  expect(text).toContain("[redacted]");
}

describe("[skill-14c] [skill-15b] --dry-run shows no secret", () => {
  it("of what import takes from a client or a file", async () => {
    for (const source of ["cursor", "other.json"]) {
      const place = workspace();
      giveFile(place, "cursor", CONFIG);
      writeFileSync(join(place.dir, "other.json"), CONFIG);
      const text = await shown(place, ["import", source]);
      expectMasked(text);
      expect(text).toMatch(/^\+ .*"READABLE": "\$\{DB_NAME\}"/m);
      expect(text).toMatch(/^\+ .*"STORED": "secret:\/\/env\/DB_PASSWORD"/m);
      expect(text).toMatch(/^\+ .*"postgres:\/\/\[redacted\]@db\.example\/x"/m);
    }
  });

  it.each([
    ["add", "x", "--env", "ODD=pw-in-env", "--", "npx", "--api-key", "pw-in-flag", "postgres://a:pw-in-address@h"],
    ["add", "x", "https://h.example/?token=pw-in-query", "--header", "X-Odd: pw-in-header"],
    ["remove", "db"],
    ["remove", "web"],
    ["disable", "db"],
    ["disable", "web"],
  ])("of the config that %s edits (%s)", async (...args) => {
    const place = workspace();
    place.write("toolcrib.json", CONFIG);
    expectMasked(await shown(place, args));
  });

  it("[skill-14d] of a client's file that connect and disconnect edit", async () => {
    const place = workspace();
    giveFile(place, "cursor", CONFIG);
    expectMasked(await shown(place, ["connect", "cursor"]));
    await place.runHere(["connect", "cursor"]);
    expectMasked(await shown(place, ["disconnect", "cursor"]));
  });
});
