import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import type { ToolcribError } from "../../../src/model/errors.ts";
import {
  isInstalled,
  packageRun,
  registryFailure,
  runnerEnvironment,
  RunnerWatch,
  type StartedRunner,
} from "../../../src/upstream/stdio/package-runner.ts";
import type { ProcessTable } from "../../../src/upstream/stdio/process-table.ts";

afterEach(() => void vi.useRealTimers());

describe("[counter-09d] which command fetches what", () => {
  it.each([
    ["npx", ["-y", "@scope/name", "."], "npm", ["@scope/name"]],
    ["/usr/bin/npx", ["--yes", "name@1.2.3", "--flag", "x"], "npm", ["name@1.2.3"]],
    ["npx", ["-y", "-p", "b", "--package=a", "run-a", "x"], "npm", ["b", "a"]],
    ["npx", ["--registry", "https://r.test/", "name"], "npm", ["name"]],
    ["npm", ["exec", "-y", "--", "name", "x"], "npm", ["name"]],
    ["npm", ["x", "name"], "npm", ["name"]],
    ["cmd", ["/c", "npx", "-y", "name"], "npm", ["name"]],
    ["C:\\Program Files\\nodejs\\npx.cmd", ["name"], "npm", ["name"]],
    ["pnpm", ["dlx", "name"], "pnpm", ["name"]],
    ["pnpx", ["name"], "pnpm", ["name"]],
    ["yarn", ["dlx", "-p", "name", "run"], "yarn", ["name"]],
    ["bunx", ["name"], "bun", ["name"]],
    ["bun", ["x", "name"], "bun", ["name"]],
    ["uvx", ["mcp-server-time"], "uv", ["mcp-server-time"]],
    ["uvx", ["-p", "3.12", "--from", "git+https://h.test/x", "run"], "uv", ["git+https://h.test/x"]],
    ["uv", ["tool", "run", "--with", "other", "name"], "uv", ["name"]],
    ["pipx", ["run", "--spec", "name", "x"], "pipx", ["name"]],
  ])("%s %j", (command, args, runner, packages) => {
    expect(packageRun(command, args)).toEqual({ runner, packages });
  });

  it.each([
    ["node", ["server.js"]],
    ["npm", ["run", "start"]],
    ["uv", ["run", "server.py"]],
    ["docker", ["run", "image"]],
    ["npx", ["-y"]],
  ])("not %s %j", (command, args) => {
    expect(packageRun(command, args)).toBeUndefined();
  });
});

describe("[counter-09c] whether npx has a package", () => {
  it("is seen in npm's own folder", () => {
    const home = mkdtempSync(join(tmpdir(), "toolcrib-npx-"));
    const run = { runner: "npm", packages: ["b", "a"] } as const;
    expect(isInstalled(run, { HOME: home })).toBe(false);
    const key = createHash("sha512").update("a\nb").digest("hex").slice(0, 16);
    const folder = join(home, "cache/_npx", key);
    mkdirSync(join(folder, "node_modules"), { recursive: true });
    expect(isInstalled(run, { HOME: home, NPM_CONFIG_CACHE: join(home, "cache") })).toBe(false);
    writeFileSync(join(folder, "package.json"), "{}");
    expect(isInstalled(run, { HOME: home, NPM_CONFIG_CACHE: join(home, "cache") })).toBe(true);
    writeFileSync(join(home, ".npmrc"), "cache = /elsewhere\n");
    expect(isInstalled(run, { HOME: home })).toBeUndefined();
    expect(isInstalled({ runner: "uv", packages: ["a"] }, { HOME: home })).toBeUndefined();
    rmSync(home, { recursive: true });
  });

  it("npm is made to report its requests, unless the user chose another level", () => {
    const run = { runner: "npm", packages: ["a"] } as const;
    expect(runnerEnvironment(run, {})).toEqual({ npm_config_loglevel: "http" });
    expect(runnerEnvironment(run, { NPM_CONFIG_LOGLEVEL: "silent" })).toEqual({ NPM_CONFIG_LOGLEVEL: "silent" });
    expect(runnerEnvironment({ runner: "uv", packages: ["a"] }, {})).toEqual({});
  });
});

const started = (runner: StartedRunner["run"]["runner"], env: Record<string, string> = {}): StartedRunner => ({
  run: { runner, packages: ["name"] },
  env,
  withheld: [],
  depth: 0,
  limitMs: 60_000,
});

describe("[counter-08f] why a runner failed, in its own words", () => {
  it.each([
    ["npm", "npm error code ENOTFOUND\nnpm error request to https://r.test/name failed", "registry_unreachable"],
    ["npm", "npm ERR! code UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "registry_certificate"],
    ["npm", "npm error code E401\nnpm error Unable to authenticate", "registry_refused"],
    ["npm", "npm error code ETARGET\nnpm error notarget No matching version", "package_not_found"],
    [
      "uv",
      "  × Failed to fetch: `https://r.test/simple/name/`\n  ├─▶ error sending request\n  ╰─▶ invalid peer certificate: UnknownIssuer",
      "registry_certificate",
    ],
    [
      "uv",
      "error: Failed to fetch: `https://r.test/`\n  Caused by: dns error: failed to lookup",
      "registry_unreachable",
    ],
    ["uv", "  × No solution found:\n  ╰─▶ Because name was not found in the package registry", "package_not_found"],
    ["bun", "error: ConnectionRefused downloading package manifest name", "registry_unreachable"],
    ["pnpm", " ERR_PNPM_FETCH_404  GET https://r.test/name: Not Found - 404", "package_not_found"],
    ["pipx", "ERROR: No matching distribution found for name", "package_not_found"],
  ] as const)("%s: %s", (runner, stderr, problem) => {
    const error = registryFailure(started(runner), stderr);
    expect(error?.code).toBe("server_unavailable");
    expect(error?.details).toMatchObject({ problem, sent: false });
    expect(error?.hint).toMatch(/^[A-Z`n].*\.$/);
  });

  it("does not take an error of the program for one of the runner", () => {
    expect(registryFailure(started("npm"), "Error: connect ECONNREFUSED 127.0.0.1:5432")).toBeUndefined();
    expect(registryFailure(started("uv"), "ssl.SSLCertVerificationError: certificate verify failed")).toBeUndefined();
    expect(registryFailure(started("npm"), "npm error code 1")).toBeUndefined();
  });
});

describe("RunnerWatch", () => {
  interface Watched {
    readonly watch: RunnerWatch;
    readonly events: unknown[];
    children: number[];
  }

  /** A pid that cannot be one, so that nothing of this machine is looked at. */
  const PID = 2 ** 22 + 1;

  function watching(options: Partial<StartedRunner> = {}): Watched {
    vi.useFakeTimers();
    const events: unknown[] = [];
    const watched: Watched = { watch: undefined as unknown as RunnerWatch, events, children: [] };
    const table: ProcessTable = {
      place: "here",
      find: () => null,
      group: () => [],
      descendants: () => [],
      marked: () => new Map(),
      children: (pid) => (pid === PID ? watched.children : []),
    };
    const watch = new RunnerWatch({
      ...started("uv"),
      ...options,
      pid: PID,
      table,
      clock: systemClock,
      onProgress: (text) => events.push(text),
      onInstalling: (isInstalling) => events.push(isInstalling),
      onFailure: (error: ToolcribError) => events.push(error.details?.["problem"]),
    });
    return Object.assign(watched, { watch });
  }

  it("[counter-09d] a runner without a program is fetching it; helpers that end at once are no program", async () => {
    const watched = watching();
    await vi.advanceTimersByTimeAsync(2000);
    watched.children = [PID + 1];
    await vi.advanceTimersByTimeAsync(200);
    watched.children = [];
    await vi.advanceTimersByTimeAsync(2000);
    expect(watched.events).toEqual([true, "installing name …"]);
    watched.children = [PID + 2];
    await vi.advanceTimersByTimeAsync(1000);
    expect(watched.events).toEqual([true, "installing name …", null, false]);
    watched.watch.stop();
  });

  it("[counter-09c] a program that is there soon was not installed", async () => {
    const watched = watching();
    await vi.advanceTimersByTimeAsync(1500);
    watched.children = [PID + 1];
    await vi.advanceTimersByTimeAsync(1000);
    watched.watch.stop();
    expect(watched.events).toEqual([true, false]);
  });

  it("[counter-08f] an attempt that failed ends it, unless the registry has answered before", () => {
    const run = { runner: "npm", packages: ["name"] } as const;
    const failed = "npm http fetch GET http://r.test/name attempt 1 failed with ECONNRESET\n";
    const first = watching({ run });
    expect(first.watch.read(Buffer.from(`hello\n${failed}`)).toString()).toBe("hello\n");
    first.watch.stop();
    expect(first.events).toEqual([true, "registry_unreachable", false]);

    const later = watching({ run });
    later.watch.read(Buffer.from("npm http fetch GET 200 http://r.test/name 12ms (cache miss)\n"));
    // In pieces, as a pipe may bring it.
    for (const piece of [failed.slice(0, 30), failed.slice(30)]) later.watch.read(Buffer.from(piece));
    expect(later.events).toEqual([true, "installing name … (ECONNRESET; it tries again)"]);
    later.watch.read(Buffer.from("npm http fetch GET http://r.test/x attempt 1 failed with CERT_HAS_EXPIRED\n"));
    expect(later.events.at(-1)).toBe("registry_certificate");
    later.watch.stop();
  });

  it("[counter-08f] what pnpm and pip say is understood, and npm's look for a newer npm ignored", () => {
    const told = (runner: "npm" | "pnpm" | "pipx", line: string): unknown[] => {
      const { watch, events } = watching({ run: { runner, packages: ["name"] } });
      watch.read(Buffer.from(`${line}\n`));
      watch.stop();
      return events.slice(1, -1);
    };
    const pnpm = " WARN  GET http://r.test/name error (ECONNREFUSED). Will retry in 10 seconds. 2 retries left.";
    expect(told("pnpm", pnpm)).toEqual(["registry_unreachable"]);
    const pip =
      "WARNING: Retrying (Retry(total=4)) after connection broken by 'SSLError(SSLCertVerificationError(1))': /x";
    expect(told("pipx", pip)).toEqual(["registry_certificate"]);
    expect(told("npm", "npm http fetch GET http://r.test/npm attempt 1 failed with ECONNREFUSED")).toEqual([]);
  });

  it("[counter-09b] has a time limit of its own", async () => {
    const { watch, events } = watching({ limitMs: 1000 });
    await vi.advanceTimersByTimeAsync(1500);
    watch.stop();
    expect(events).toContain("install_timeout");
  });

  it("[counter-09c] a package that npm has is installed only if npm fetches something", async () => {
    const home = mkdtempSync(join(tmpdir(), "toolcrib-npx-"));
    const key = createHash("sha512").update("name").digest("hex").slice(0, 16);
    mkdirSync(join(home, ".npm/_npx", key, "node_modules"), { recursive: true });
    writeFileSync(join(home, ".npm/_npx", key, "package.json"), "{}");
    const { watch, events } = watching({ run: { runner: "npm", packages: ["name"] }, env: { HOME: home } });
    await vi.advanceTimersByTimeAsync(10_000);
    watch.read(Buffer.from("npm http fetch GET 200 http://r.test/name 12ms (cache revalidated)\n"));
    await vi.advanceTimersByTimeAsync(1000);
    expect(events).toEqual([]);
    watch.read(Buffer.from("npm http fetch GET 200 http://r.test/name/-/name-2.0.0.tgz 12ms (cache miss)\n"));
    await vi.advanceTimersByTimeAsync(1000);
    expect(events).toEqual([true, "installing name …"]);
    watch.stop();
    rmSync(home, { recursive: true });
  });

  it("keeps words without a line break for the end, but not without bound", () => {
    const { watch } = watching();
    expect(watch.read(Buffer.from("one\ntwo")).toString()).toBe("one\n");
    const long = "x".repeat(70_000);
    expect(watch.read(Buffer.from(long)).toString()).toBe(`two${long}`);
    // A letter of two bytes in two pieces.
    const [first = 0, second = 0] = Buffer.from("é");
    watch.read(Buffer.from([first]));
    watch.read(Buffer.from([second]));
    expect(watch.stop().toString()).toBe("é");
  });
});
