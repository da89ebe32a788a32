/** Slow things show themselves to a person at a terminal, and nothing of it reaches a program. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { eventually } from "../support/eventually.ts";
import { fakeStreams, type FakeStreams } from "./run/fake-terminal.ts";
import { misbehaving, missingProgram, type Workspace, workspace } from "./run-cli.ts";

const FIXTURE = join(import.meta.dirname, "../fixtures/misbehaving-server.mjs");

/** A server that begins to answer when `open` is called. */
function gatedServer(place: Workspace): { readonly entry: Record<string, unknown>; open(): void } {
  const gate = join(place.dir, "gate");
  const main = place.write(
    "gated.mjs",
    `import { existsSync } from "node:fs";
     while (!existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 10));
     await import(${JSON.stringify(FIXTURE)});`,
  );
  return { entry: { command: process.execPath, args: [main] }, open: () => writeFileSync(gate, "") };
}

interface AtTerminal extends FakeStreams {
  readonly ended: Promise<number>;
}

function atTerminal(place: Workspace, args: readonly string[], isTTY = true): AtTerminal {
  const streams = fakeStreams({ isTTY });
  const ended = runCommandLine(args, { ...streams, env: { ...place.env(), NO_COLOR: "1" }, cwd: place.dir });
  return { ...streams, ended };
}

describe("[joy-13a] at a terminal", () => {
  for (const [command, quick, slow] of [
    ["status", /^quick +ready .* 12 /m, /^slow +ready .* 12 /m],
    ["list", /^quick +12 tools\n +quick__echo /m, /^slow +12 tools\n +slow__echo /m],
    ["doctor", /^ok +quick +stdio, 12 tools/m, /^ok +slow +stdio, 12 tools/m],
  ] as const) {
    it(`${command} shows each server as it answers, and says which one it waits for`, async () => {
      const place = workspace();
      const gated = gatedServer(place);
      place.configure({ slow: gated.entry, quick: misbehaving("ok"), broken: missingProgram });
      const { written, ended } = atTerminal(place, [command]);
      await eventually(() => quick.test(written().stdout), "the quick server");
      await eventually(() => written().stderr.includes("waiting for slow"), "the hint");
      expect(written().stdout).not.toMatch(slow);
      if (command === "doctor") expect(written().stdout).toMatch(/^ok +node .*\n[^]*^fail +broken /m);
      gated.open();
      expect(await ended).toBe(command === "doctor" ? 1 : 0);
      const { stdout, stderr } = written();
      expect(stdout).toMatch(slow);
      expect(stdout.match(new RegExp(quick, "gm"))).toHaveLength(1);
      expect(stderr).toContain("⠋");
      // The last thing on the line is its erasure, or a note after it.
      expect(stderr.split("\r\u001b[K").at(-1)).toMatch(/^(?:not connected: broken: .*\n)?$/);
    });
  }

  it("the same servers appear with the same state as in a pipe", async () => {
    const place = workspace();
    place.configure({ one: misbehaving("ok"), two: missingProgram, off: { ...misbehaving("ok"), enabled: false } });
    const live = atTerminal(place, ["status"]);
    await live.ended;
    const piped = atTerminal(place, ["status"], false);
    await piped.ended;
    const states = (text: string): string[] =>
      text
        .split("\n")
        .map((line) => line.split(/ {2,}/).slice(0, 2).join(" "))
        .toSorted();
    expect(states(live.written().stdout)).toEqual(states(piped.written().stdout));
  });

  it("a table that grows fits 50 columns", async () => {
    const place = workspace();
    place.configure({ "a-server-of-ours": misbehaving("ok"), broken: missingProgram });
    const streams = fakeStreams({ isTTY: true });
    Object.assign(streams.stdout, { columns: 50 });
    await runCommandLine(["status"], { ...streams, env: { ...place.env(), NO_COLOR: "1" }, cwd: place.dir });
    const lines = streams.written().stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^ID +STATE +TOOLS +REASON$/);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(50);
    expect(lines.join("\n")).toContain("a-server-of-ours");
  });
});

describe("[joy-13b] without a terminal", () => {
  it("nothing but the result is written, and with --json at a terminal as well", async () => {
    const place = workspace();
    place.configure({ one: misbehaving("ok") });
    for (const command of ["status", "list", "doctor"]) {
      const piped = atTerminal(place, [command], false);
      await piped.ended;
      expect(piped.written().stderr).toBe("");
      const json = atTerminal(place, [command, "--json"]);
      await json.ended;
      expect(json.written().stderr).toBe("");
      expect(() => JSON.parse(json.written().stdout) as unknown).not.toThrow();
    }
  });

  it("servers are in the order of the config", async () => {
    const place = workspace();
    place.configure({ slow: misbehaving("slow-start", "500"), quick: misbehaving("ok") });
    for (const command of ["status", "doctor"]) {
      const piped = atTerminal(place, [command], false);
      await piped.ended;
      const { stdout } = piped.written();
      expect(stdout.indexOf("slow ")).toBeGreaterThan(-1);
      expect(stdout.indexOf("slow ")).toBeLessThan(stdout.indexOf("quick "));
    }
  });
});

describe("[joy-13c] bars", () => {
  const BAR = /\[#*-*\] \d+%/;

  it("for backup, restore and audit verify, on a terminal only", async () => {
    const place = workspace();
    place.configure({ one: misbehaving("ok") });
    expect((await place.run(["call", "one__echo", "text=hi"])).code).toBe(0);
    const file = join(place.dir, "backup.tar.gz");
    for (const args of [
      ["backup", file, "--force"],
      ["restore", file, "--force"],
      ["audit", "verify"],
    ]) {
      const live = atTerminal(place, args);
      expect(await live.ended).toBe(0);
      const shown = live.written().stderr.split("\r\u001b[K");
      expect(shown.length).toBeGreaterThan(2);
      expect(shown.some((line) => (args[0] === "audit" ? /Comparing with/ : BAR).test(line))).toBe(true);
      const piped = atTerminal(place, args, false);
      expect(await piped.ended).toBe(0);
      expect(piped.written().stderr).not.toContain("\r");
      expect(stripVTControlCharacters(live.written().stdout).replace(/[\d-]+T\S+/g, "")).toContain(
        piped.written().stdout.split(" ")[0],
      );
    }
  });

  it("for skills that are fetched", async () => {
    const place = workspace();
    const work = join(place.dir, "notes");
    mkdirSync(work);
    writeFileSync(join(work, "SKILL.md"), "---\nname: notes\ndescription: Takes notes.\n---\nTake notes.\n");
    const git = (...args: string[]): void =>
      void execFileSync("git", args, { cwd: work, env: { ...place.env(), ...WHO } });
    git("init", "-q");
    git("add", ".");
    git("commit", "-q", "-m", "one");
    const live = atTerminal(place, ["skill", "install", `file://${work}`, "--yes"]);
    expect(await live.ended).toBe(0);
    expect(live.written().stderr).toMatch(/Fetching \[#+\] 100%/);
    const piped = atTerminal(place, ["skill", "install", `file://${work}`, "--yes"], false);
    await piped.ended;
    expect(piped.written().stderr).not.toContain("Fetching");
  });
});

const WHO = {
  GIT_AUTHOR_NAME: "t",
  GIT_AUTHOR_EMAIL: "t@example.com",
  GIT_COMMITTER_NAME: "t",
  GIT_COMMITTER_EMAIL: "t@example.com",
};
