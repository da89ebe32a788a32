import { execFileSync } from "node:child_process";
import { createServer, type IncomingMessage, type Server } from "node:http";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  fetchSkills,
  type Fetched,
  isGitSource,
  parseGitSource,
  formatGitSource,
} from "../../../src/skills/fetch/fetch-skills.ts";
import { SKILL_TEXT } from "./archives.ts";

const place = mkdtempSync(join(tmpdir(), "toolcrib-git-"));
const bare = join(place, "skills.git");
const ran = join(place, "hook-ran");
let first = "";

const env = {
  PATH: process.env["PATH"],
  HOME: place,
  GIT_AUTHOR_NAME: "t",
  GIT_AUTHOR_EMAIL: "t@example.com",
  GIT_COMMITTER_NAME: "t",
  GIT_COMMITTER_EMAIL: "t@example.com",
};
const git = (cwd: string, ...args: string[]): string =>
  execFileSync("git", args, { cwd, env, encoding: "utf8" }).trim();

beforeAll(() => {
  const work = join(place, "work");
  mkdirSync(join(work, "skills/notes"), { recursive: true });
  git(work, "init", "-q", "-b", "main");
  writeFileSync(join(work, "skills/notes/SKILL.md"), SKILL_TEXT);
  writeFileSync(join(work, "skills/notes/run.sh"), "#!/bin/sh\n");
  chmodSync(join(work, "skills/notes/run.sh"), 0o755);
  symlinkSync("/etc/passwd", join(work, "skills/notes/link"));
  git(work, "add", ".");
  git(work, "commit", "-q", "-m", "one");
  first = git(work, "rev-parse", "HEAD");
  git(work, "tag", "v1");
  writeFileSync(join(work, "skills/notes/SKILL.md"), SKILL_TEXT.replace("Takes", "Keeps"));
  git(work, "commit", "-q", "-am", "two");
  git(place, "clone", "-q", "--bare", work, bare);
  git(bare, "config", "uploadpack.allowAnySHA1InWant", "true");
  // Hooks that the user's own settings or templates would bring in.
  const hooks = join(place, "hooks");
  mkdirSync(hooks);
  for (const name of ["post-checkout", "post-merge", "reference-transaction"]) {
    writeFileSync(join(hooks, name), `#!/bin/sh\necho ${name} >> ${ran}\n`, { mode: 0o755 });
  }
  writeFileSync(join(place, ".gitconfig"), `[core]\n  hooksPath = ${hooks}\n[init]\n  templateDir = ${place}\n`);
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

const open: Fetched[] = [];
async function fetch(source: string, cwd = place): Promise<Fetched> {
  const fetched = await fetchSkills(source, { cwd, env });
  open.push(fetched);
  return fetched;
}
afterEach(async () => {
  for (const each of open.splice(0)) await each.dispose();
});

describe("fetching with git", () => {
  it("[skill-10b] gets one commit of a repository as plain files, runs no hook, and cleans up", async () => {
    rmSync(ran, { force: true });
    const fetched = await fetch(`file://${bare}`);
    expect(readFileSync(join(fetched.dir, "skills/notes/SKILL.md"), "utf8")).toContain("Keeps");
    expect(fetched.source).toBe(`file://${bare}`);
    expect(fetched.resolved).toMatch(/^[0-9a-f]{40}$/);
    expect(existsSync(join(fetched.dir, ".git"))).toBe(false);
    expect(lstatSync(join(fetched.dir, "skills/notes/run.sh")).mode & 0o111).not.toBe(0);
    const link = lstatSync(join(fetched.dir, "skills/notes/link"));
    expect(link.isSymbolicLink()).toBe(false);
    expect(link.isFile()).toBe(true);
    expect(existsSync(ran)).toBe(false);
    await fetched.dispose();
    expect(existsSync(fetched.dir)).toBe(false);
  });

  it("[skill-10b] takes a branch, a tag, a commit and a folder", async () => {
    for (const ref of ["v1", first]) {
      const fetched = await fetch(`git+file://${bare}#${ref}:skills/notes`);
      expect(readFileSync(join(fetched.dir, "SKILL.md"), "utf8")).toContain("Takes");
      expect(fetched.resolved).toBe(first);
      expect(fetched.source).toBe(`file://${bare}#${ref}:skills/notes`);
    }
    expect((await fetch("./skills.git#main")).source).toBe(`file://${bare}#main`);
  });

  it("[skill-10b] is not led astray by git's own variables, as inside a hook", async () => {
    const elsewhere = join(place, "work");
    const before = git(elsewhere, "rev-parse", "HEAD");
    const fetched = await fetchSkills(`file://${bare}#v1`, {
      cwd: place,
      env: { ...env, GIT_DIR: join(elsewhere, ".git"), GIT_WORK_TREE: elsewhere, GIT_INDEX_FILE: "x" },
    });
    open.push(fetched);
    expect(existsSync(join(fetched.dir, "skills/notes/SKILL.md"))).toBe(true);
    expect(git(elsewhere, "rev-parse", "HEAD")).toBe(before);
  });

  it("says what is missing: the ref, the folder, the repository, the program", async () => {
    await expect(fetch(`file://${bare}#nowhere`)).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringMatching(/failed: couldn't find remote ref nowhere$/),
      hint: expect.stringContaining("after #"),
    });
    await expect(fetch(`file://${bare}#main:nowhere`)).rejects.toMatchObject({ message: /no such folder/ });
    await expect(fetch(`file://${place}/none.git`)).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringMatching(/failed: '.*none\.git' does not appear to be a git repository$/),
    });
    const withoutGit = fetchSkills(`file://${bare}`, { cwd: place, env: { PATH: place } });
    await expect(withoutGit).rejects.toMatchObject({ message: /program git was not found/ });
  });

  it("[skill-10b] a server that does not answer is not a repository that is not there", async () => {
    const server = createServer();
    const port = await listening(server);
    await new Promise((closed) => server.close(closed));
    await expect(fetch(`http://127.0.0.1:${port}/x.git`)).rejects.toMatchObject({
      code: "server_unavailable",
      message: expect.stringContaining("127.0.0.1"),
      hint: expect.stringContaining("network"),
    });
  });

  it("ends git when it is told to", async () => {
    const signal = AbortSignal.timeout(50);
    const server = createServer(() => {});
    const port = await listening(server);
    const stuck = fetchSkills(`http://127.0.0.1:${port}/x.git`, { cwd: place, env, signal });
    await expect(stuck).rejects.toMatchObject({ code: "cancelled" });
    server.closeAllConnections();
    server.close();
  });
});

function listening(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}

describe("credentials in an address", () => {
  it("[skill-10b] reach the server in a header and nobody else", async () => {
    const asked: IncomingMessage["headers"][] = [];
    const server = createServer((request, response) => {
      asked.push(request.headers);
      response.writeHead(401, { "www-authenticate": "Basic" }).end();
    });
    const port = await listening(server);
    const error = await fetchSkills(`http://me:tok-3n-value@127.0.0.1:${port}/x.git`, { cwd: place, env }).catch(
      (thrown: unknown) => thrown,
    );
    server.close();
    expect(asked[0]?.authorization).toBe(`Basic ${Buffer.from("me:tok-3n-value").toString("base64")}`);
    expect(error).toMatchObject({ code: "unauthorized", hint: expect.stringContaining("git ls-remote") });
    expect(String(error)).not.toContain("tok-3n");
    expect(String(error)).toContain(`http://127.0.0.1:${port}/x.git`);
  });

  it("[skill-10b] are not part of the source that is kept", () => {
    const source = parseGitSource("https://me:hidden@example.com/a/b.git#v1", "/");
    expect(source.credentials).toBe("me:hidden");
    expect(formatGitSource(source)).toBe("https://example.com/a/b.git#v1");
    expect(formatGitSource(parseGitSource("ssh://git:hidden@example.com/a", "/"))).toBe("ssh://git@example.com/a");
  });
});

describe("git addresses", () => {
  it.each([
    ["https://example.com/a/b", "https://example.com/a/b", undefined, []],
    ["git+ssh://git@example.com/a/b#x", "ssh://git@example.com/a/b", "x", []],
    ["git@github.com:a/b.git#main:skills/x/", "git@github.com:a/b.git", "main", ["skills", "x"]],
    ["https://github.com/a/b/tree/main/skills/x", "https://github.com/a/b", "main", ["skills", "x"]],
    ["../x.git#:s", "file:///w/x.git", undefined, ["s"]],
  ])("reads %s", (text, url, ref, subdir) => {
    expect(isGitSource(text)).toBe(true);
    expect(parseGitSource(text, "/w/here")).toEqual({ url, subdir, ref });
  });

  it.each([
    "ext::sh -c touch% /tmp/evil",
    "git+ext::sh",
    "fd::17",
    "git+-upload-pack=touch x.git",
    "git://example.com/a.git",
    "http://example.com/a.git",
    "https://example.com/a#--upload-pack=x",
    "https://example.com/a#a..b",
    "https://example.com/a#a b",
  ])("[skill-10b] refuses %j", async (text) => {
    expect(() => parseGitSource(text, "/")).toThrow(expect.objectContaining({ code: "invalid_arguments" }));
  });

  it("[skill-10b] refuses a folder that climbs out", () => {
    expect(() => parseGitSource("https://example.com/a#main:../x", "/")).toThrow(
      expect.objectContaining({ code: "blocked" }),
    );
  });

  it("does not take paths and packages for git", () => {
    for (const text of ["./notes", "notes", "C:\\skills", "npm:x", "@a/b", "a.zip"])
      expect(isGitSource(text)).toBe(false);
  });
});
