import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { MAIN } from "../support/main-program.ts";
import { misbehaving, type Workspace, workspace } from "./run-cli.ts";
import { isMissing } from "../support/skips.ts";

function configured(): Workspace {
  const place = workspace();
  place.configure(
    { files: misbehaving("ok") },
    { tools: { deny: ["files__exit"], ask: ["files__change"] }, roles: { reviewer: { tools: { deny: ["*__echo"] } } } },
  );
  return place;
}

describe("[guard-06] policy explain", () => {
  it("prints the decision, the rule and what each level said", async () => {
    const place = configured();
    const denied = await place.runHere(["policy", "explain", "files__exit"]);
    expect(denied.code).toBe(0);
    expect(denied.stdout).toContain("files__exit for the owner: deny");
    expect(denied.stdout).toContain('Because of deny "files__exit" at level hub');
    expect(denied.stdout).toMatch(/hub\s+deny\s+deny: files__exit/);

    const asRole = await place.runHere(["policy", "explain", "files__echo", "--role", "reviewer", "--json"]);
    expect(JSON.parse(asRole.stdout)).toMatchObject({
      tool: "files__echo",
      role: "reviewer",
      decision: { verdict: "deny", rule: { level: "role", pattern: "*__echo" } },
    });
    const plain = await place.runHere(["policy", "explain", "files__echo"]);
    expect(plain.stdout).toContain("No rule applies to it");
  });

  it("says so for a tool or an action that does not exist", async () => {
    const place = configured();
    expect(await place.runHere(["policy", "explain", "files__ecko"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("files__echo"),
    });
    expect(await place.runHere(["policy", "guess", "files__echo"])).toMatchObject({ code: 2 });
  });
});

describe("roles and asking on the command line", () => {
  it("[guard-04a] --role narrows what is listed and called", async () => {
    const place = configured();
    const listed = await place.runHere(["list", "--role", "reviewer", "--json"]);
    expect(listed.stdout).not.toContain("files__echo");
    expect(listed.stdout).toContain("files__env");
    expect((await place.runHere(["call", "files__echo", "text=x", "--role", "reviewer"])).code).toBe(3);
    expect((await place.runHere(["list", "--role", "nobody", "--json"])).stdout.trim()).toBe("[]");
  });

  it("[guard-03d] without a terminal an ask rule is a denial that says how to approve, --yes or not", async () => {
    const place = configured();
    for (const extra of [[], ["--yes"]]) {
      const asked = await place.runHere(["call", "files__change", ...extra]);
      expect(asked.code).toBe(3);
      expect(asked.stderr).toContain("A person has to approve it");
      expect(asked.stderr).not.toMatch(/toolcrib [a-z]|!files__change/);
    }
  });
});

const hasScript = process.platform === "linux" && spawnSync("script", ["--version"]).status === 0;
isMissing("questions on a terminal", hasScript ? undefined : "no program `script`");

/** Runs a command on a pseudo-terminal and types `answer` when the question is there. */
async function onTerminal(
  place: Workspace,
  args: readonly string[],
  answer: string,
): Promise<{ code: number; shown: string }> {
  const command = [process.execPath, MAIN, ...args].map((word) => `'${word}'`).join(" ");
  const child = spawn("script", ["-qec", command, "/dev/null"], {
    cwd: place.dir,
    env: {
      ...{ PATH: process.env["PATH"], HOME: place.home, TOOLCRIB_HOME: place.home, TERM: "xterm" },
      TOOLCRIB_CONFIG: place.configFile,
    },
  });
  let shown = "";
  let typed = false;
  child.stdout.on("data", (chunk) => {
    shown += String(chunk);
    if (typed || !shown.includes("Allow this call?")) return;
    typed = true;
    child.stdin.write(`${answer}\n`);
  });
  const [code] = await once(child, "close");
  return { code: Number(code), shown };
}

describe.skipIf(!hasScript)("[guard-03d] on a terminal", () => {
  it("asks, and goes on or not as the person says", async () => {
    const place = configured();
    const yes = await onTerminal(place, ["call", "files__change"], "o");
    expect(yes.shown).toContain("files__change needs approval");
    expect(yes.code).toBe(0);
    const no = await onTerminal(place, ["call", "files__change"], "n");
    expect(no.code).toBe(3);
    const skipped = await onTerminal(place, ["call", "files__change", "--yes"], "");
    expect(skipped.shown).not.toContain("Allow this call?");
    expect(skipped.code).toBe(0);
  });

  it("[guard-03b] always is written to the config and not asked again", async () => {
    const place = configured();
    expect((await onTerminal(place, ["call", "files__change"], "always")).code).toBe(0);
    expect(JSON.parse(place.read("toolcrib.json"))).toMatchObject({
      tools: { ask: ["files__change", "!=tool:files__change"] },
    });
    expect((await place.runHere(["call", "files__change"])).code).toBe(0);
  });
});

describe("rules on arguments on the command line", () => {
  function place(): Workspace {
    const made = workspace();
    made.configure(
      { files: misbehaving("ok") },
      { tools: { deny: ["files__echo(text=secret*)"] }, audit: { arguments: true } },
    );
    return made;
  }

  it("[shape-03a] policy explain --args names the rule, and the nearest that decides otherwise", async () => {
    const made = place();
    const denied = await made.runHere(["policy", "explain", "files__echo", "--args", '{"text":"secret-1"}']);
    expect(denied.stdout).toContain("files__echo for the owner: deny");
    expect(denied.stdout).toContain("It looks at text.");
    expect(denied.stdout).not.toContain("secret-1");
    const allowed = await made.runHere(["policy", "explain", "files__echo", "--args", '{"text":"a"}']);
    expect(allowed.stdout).toContain("files__echo for the owner: allow");
    expect(allowed.stdout).toContain('deny "files__echo(text=secret*)" at level hub, which would need text=secret*');
    expect(await made.runHere(["policy", "explain", "files__echo", "--args", "text"])).toMatchObject({ code: 2 });
  });

  it("[shape-03b] policy test fails for a decision that is not the expected one", async () => {
    const made = place();
    const cases = [
      { tool: "files__echo", args: { text: "secret-1" }, expect: "deny", rule: "files__echo(text=secret*)" },
      { tool: "files__echo", args: { text: "a" }, expect: "allow" },
    ];
    made.write("cases.json", JSON.stringify(cases));
    expect(await made.runHere(["policy", "test", "cases.json"])).toMatchObject({ code: 0 });
    made.write("cases.json", JSON.stringify([...cases, { tool: "files__echo", args: { text: "b" }, expect: "ask" }]));
    const failed = await made.runHere(["policy", "test", "cases.json", "--json"]);
    expect(failed.code).toBe(1);
    expect(JSON.parse(failed.stdout)).toMatchObject({ passed: 2, failed: 1 });
    made.write("cases.json", '[{ "tool": "files__echo", "expected": "ask" }]');
    expect(await made.runHere(["policy", "test", "cases.json"])).toMatchObject({ code: 2 });
  });

  it("[shape-03c] policy replay shows what another config would decide otherwise", async () => {
    const made = place();
    for (const text of ["a", "b"]) await made.runHere(["call", "files__echo", `text=${text}`]);
    expect((await made.runHere(["policy", "replay"])).stdout).toContain("0 of 2 recorded calls");
    made.configure(
      { files: misbehaving("ok") },
      { tools: { deny: ["files__echo(text=b)"] }, audit: { arguments: true } },
    );
    const replayed = await made.runHere(["policy", "replay", "--since", "1h", "--json"]);
    expect(JSON.parse(replayed.stdout)).toMatchObject({
      calls: 2,
      withoutArguments: 0,
      changed: [{ tool: "files__echo", before: "allow", now: "deny", rule: "deny: files__echo(text=b)" }],
    });
  });

  it("[shape-03c] policy replay says nothing of a call that arguments decided, if they are not in the log", async () => {
    const made = place();
    const rules = { tools: { deny: ["files__echo(text=b)"] }, audit: { arguments: false } };
    made.configure({ files: misbehaving("ok") }, rules);
    expect((await made.runHere(["call", "files__echo", "text=b"])).code).toBe(3);
    const { stdout } = await made.runHere(["policy", "replay", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ calls: 1, withoutArguments: 1, changed: [] });
  });
});
