import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fetchSkills, parseNpmSource } from "../../../src/skills/fetch/fetch-skills.ts";
import { SKILL_TEXT, tgzOf } from "./archives.ts";

const place = mkdtempSync(join(tmpdir(), "toolcrib-npm-"));
const ran = join(place, "script-ran");
let server: Server;
let env: NodeJS.ProcessEnv;

function tarball(extra: { name: string; content: string }[] = []): Buffer {
  const manifest = {
    name: "@crib/skills",
    version: "1.2.0",
    scripts: Object.fromEntries(
      ["preinstall", "install", "postinstall", "prepare", "prepack"].map((name) => [name, `touch ${ran}`]),
    ),
  };
  return tgzOf([
    { name: "package/package.json", content: JSON.stringify(manifest) },
    { name: "package/skills/notes/SKILL.md", content: SKILL_TEXT },
    ...extra,
  ]);
}

/** A registry of two packages, one of which climbs. */
beforeAll(async () => {
  const bodies: Record<string, Buffer> = {
    "@crib/skills": tarball(),
    evil: tarball([{ name: "package/../../evil", content: "x" }]),
  };
  server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "").slice(1);
    const body = bodies[path.replace(/^tarballs\//, "")];
    if (body === undefined) return void response.writeHead(404).end("{}");
    if (path.startsWith("tarballs/")) return void response.end(body);
    const dist = {
      tarball: `http://${request.headers.host ?? ""}/tarballs/${path}`,
      integrity: `sha512-${createHash("sha512").update(body).digest("base64")}`,
    };
    const version = { name: path, version: "1.2.0", dist };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ name: path, "dist-tags": { latest: "1.2.0" }, versions: { "1.2.0": version } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  env = {
    PATH: [dirname(process.execPath), process.env["PATH"]].join(delimiter),
    HOME: place,
    npm_config_registry: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
  };
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(place, { recursive: true, force: true });
});

describe("fetching with npm", () => {
  it("[skill-10c] downloads and unpacks a package, runs none of its scripts, and leaves nothing behind", async () => {
    for (const source of ["@crib/skills", "npm:@crib/skills@^1.0.0"]) {
      const fetched = await fetchSkills(source, { cwd: place, env });
      expect(readFileSync(join(fetched.dir, "package/skills/notes/SKILL.md"), "utf8")).toBe(SKILL_TEXT);
      expect(fetched.source).toBe(source.startsWith("npm:") ? source : `npm:${source}`);
      expect(fetched.resolved).toContain("1.2.0");
      await fetched.dispose();
      expect(existsSync(fetched.dir)).toBe(false);
    }
    expect(existsSync(ran)).toBe(false);
    expect(readdirSync(place)).toEqual([]);
  }, 60_000);

  it("[skill-10c] holds the package to the rules of archives, and says what is not there", async () => {
    await expect(fetchSkills("npm:evil", { cwd: place, env })).rejects.toMatchObject({ code: "blocked" });
    await expect(fetchSkills("npm:absent", { cwd: place, env })).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringMatching(/^Downloading npm:absent failed: E404: Not Found - GET http.*\/absent/),
      hint: expect.stringContaining("Check name and version"),
    });
    expect(readdirSync(place)).toEqual([]);
  }, 60_000);

  it("[skill-10c] says that the registry does not answer, not that the package is not there", async () => {
    const closed = { ...env, npm_config_registry: "http://127.0.0.1:1/", npm_config_fetch_retries: "0" };
    await expect(fetchSkills("npm:absent", { cwd: place, env: closed })).rejects.toMatchObject({
      code: "server_unavailable",
      message: expect.stringMatching(/failed: ECONNREFUSED: .*127\.0\.0\.1:1/),
      hint: expect.stringContaining("network"),
    });
  }, 60_000);

  it.each([
    "npm:../x",
    "npm:-x",
    "npm:a@file:/etc",
    "npm:a@https://example.com/x.tgz",
    "npm:a@npm:b",
    "npm:git+ssh://x",
    "npm:",
  ])("[skill-10c] takes names and ranges only, not %j", (source) => {
    expect(() => parseNpmSource(source)).toThrow(expect.objectContaining({ code: "invalid_arguments" }));
  });
});
