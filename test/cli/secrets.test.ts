import { execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { readSecret } from "../../src/cli/terminal-input.ts";
import type { CheckedReference } from "../../src/cli/commands/secrets.ts";
import { VaultDouble } from "../doubles/vault.ts";
import { MAIN } from "../support/main-program.ts";
import { type Workspace, workspace } from "./run-cli.ts";
import { isMissing } from "../support/skips.ts";

/** No keychain, nor any other program, unless the test puts one there. */
function withoutKeychain(place: Workspace, env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  mkdirSync(join(place.dir, "bin"), { recursive: true });
  return { PATH: [join(place.dir, "bin"), "/nowhere"].join(delimiter), ...env };
}

function addProgram(place: Workspace, name: string, script: string): void {
  const file = join(place.dir, "bin", name);
  mkdirSync(join(place.dir, "bin"), { recursive: true });
  writeFileSync(file, `#!${process.execPath}\n${script}`);
  chmodSync(file, 0o755);
}

describe("[guard-08b] secrets check", () => {
  const server = { command: "x", enabled: false };

  it("shows for every reference whether it is found, its length, provider and places, and never a value", async () => {
    const place = workspace();
    const vault = await new VaultDouble().start();
    vault.secrets.set("kv/app", { token: "value-in-vault" });
    place.write("token.txt", "value-in-file\n");
    addProgram(place, "keeper", `process.stdout.write("value-of-keeper")`);
    place.configure(
      {
        one: {
          ...server,
          env: {
            A: "secret://vault/kv/app#token",
            B: "x ${HERE} secret://file/token.txt",
            C: "${GONE:-value-of-default}",
          },
        },
        two: {
          url: "https://h/${HERE}",
          headers: { X: "Bearer secret://exec/keeper" },
          auth: { type: "bearer", token: "secret://user/TOKEN" },
        },
      },
      { secrets: { exec: { keeper: ["keeper"] } } },
    );
    const env = withoutKeychain(place, {
      HERE: "value-here",
      VAULT_ADDR: vault.url,
      VAULT_TOKEN: "vault-token-of-test",
    });
    const { code, stdout, stderr, json } = await place.runHere(["secrets", "check", "--json"], { env });
    const byReference = Object.fromEntries(
      json<CheckedReference[]>().map(({ reference, ...rest }) => [reference, rest]),
    );
    expect(byReference).toEqual({
      "secret://vault/kv/app#token": { provider: "vault", found: true, length: 14, usedIn: ["one: env.A"] },
      "${HERE}": { provider: "env", found: true, length: 10, usedIn: ["one: env.B", "two: url"] },
      "secret://file/token.txt": { provider: "file", found: true, length: 13, usedIn: ["one: env.B"] },
      "${GONE:-value-of-default}": { provider: "default", found: true, length: 16, usedIn: ["one: env.C"] },
      "secret://exec/keeper": { provider: "exec", found: true, length: 15, usedIn: ["two: headers.X"] },
      "secret://user/TOKEN": {
        provider: "user",
        found: null,
        reason: "looked up for each user who connects",
        usedIn: ["two: auth.token"],
      },
    });
    expect(code).toBe(0);
    const table = await place.runHere(["secrets", "check"], { env });
    expect(table.stdout).toMatch(
      /^REFERENCE +PROVIDER +FOUND +LENGTH +USED IN +REASON\nsecret:\/\/vault\/kv\/app#token +vault +yes +14 +one: env\.A\n/,
    );
    for (const output of [stdout, stderr, table.stdout, table.stderr]) {
      for (const value of ["value-in-vault", "value-here", "value-in-file", "value-of-keeper", "vault-token-of-test"])
        expect(output).not.toContain(value);
    }
  });

  it("exits 1 where one is not found, with the reason and what to do", async () => {
    const place = workspace();
    place.configure({
      one: {
        ...server,
        args: ["${GONE}", "${broken"],
        env: { A: "secret://nowhere/x", B: "secret://vault/kv/a#b", C: "secret://keychain/a/b" },
      },
    });
    const env = withoutKeychain(place, { VAULT_ADDR: "https://127.0.0.1:9" });
    const { code, json } = await place.runHere(["secrets", "check", "--json"], { env });
    expect(code).toBe(1);
    const checked = json<CheckedReference[]>();
    expect(checked.map(({ reference, found }) => [reference, found])).toEqual([
      ["${GONE}", false],
      ["${broken", false],
      ["secret://nowhere/x", false],
      ["secret://vault/kv/a#b", false],
      ["secret://keychain/a/b", false],
    ]);
    expect(checked[0]).toMatchObject({
      provider: "env",
      reason: "is not set",
      hint: "Set GONE in the environment that Toolcrib runs in.",
    });
    expect(checked[3]?.reason).toBe("needs a sign-in to Vault");
    const human = await place.runHere(["secrets", "check"], { env });
    expect(human.code).toBe(1);
    expect(human.stdout).toMatch(/\$\{GONE\} +env +no +- +one: args\[0\] +is not set/);
    expect(human.stderr).toContain("${GONE}: Set GONE in the environment");
  });

  it("is content with a config without references", async () => {
    const place = workspace();
    place.configure({ one: server });
    expect(await place.runHere(["secrets", "check", "--json"])).toMatchObject({ code: 0, stdout: "[]\n" });
    expect((await place.runHere(["secrets", "check"])).stderr).toContain("no references");
  });
});

describe("[guard-07b] secrets set", () => {
  it("stores in a private file where there is no keychain, and prints a reference that works", async () => {
    const place = workspace();
    const env = withoutKeychain(place);
    const set = await place.runHere(["secrets", "set", "MY_TOKEN", "--stdin"], { env, input: "canary-value\n" });
    expect(set).toMatchObject({ code: 0, stdout: "secret://file/~/secrets/MY_TOKEN\n" });
    expect(set.stderr).toContain("There is no keychain to use");
    const file = join(place.home, "secrets", "MY_TOKEN");
    expect(readFileSync(file, "utf8")).toBe("canary-value\n");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(place.home, "secrets")).mode & 0o777).toBe(0o700);
    expect(set.stdout + set.stderr).not.toContain("canary-value");
    place.configure({ one: { command: "x", env: { A: set.stdout.trim() } } });
    expect((await place.runHere(["secrets", "check", "--json"], { env })).json()).toMatchObject([
      { found: true, length: 12 },
    ]);
  });

  it("makes a file private that was not, and replaces its value", async () => {
    const place = workspace();
    const env = withoutKeychain(place);
    mkdirSync(join(place.home, "secrets"));
    const file = join(place.home, "secrets", "T");
    writeFileSync(file, "old");
    chmodSync(file, 0o644);
    const { json } = await place.runHere(["secrets", "set", "T", "--stdin", "--json"], {
      env: { ...env, HOME: "/elsewhere" },
      input: "new",
    });
    expect(json()).toMatchObject({ name: "T", stored: "file", file, reference: `secret://file/${file}` });
    expect(readFileSync(file, "utf8")).toBe("new\n");
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("stores in the keychain where there is one", async () => {
    const place = workspace();
    const env = withoutKeychain(place);
    const script = `const fs = require("node:fs"); if (process.argv[2] === "store") fs.writeFileSync(process.env.HOME + "/kept", JSON.stringify([process.argv.slice(3), fs.readFileSync(0, "utf8")]))`;
    addProgram(place, process.platform === "darwin" ? "security" : "secret-tool", script);
    const set = await place.runHere(["secrets", "set", "MY_TOKEN", "--stdin"], { env, input: "canary-value\n" });
    expect(set).toMatchObject({ code: 0, stdout: "secret://keychain/toolcrib/MY_TOKEN\n" });
    expect(JSON.parse(readFileSync(join(place.home, "kept"), "utf8"))).toEqual([
      ["--label=toolcrib MY_TOKEN", "service", "toolcrib", "account", "MY_TOKEN"],
      "canary-value",
    ]);
  });

  it("stores a value of one user, for that user", async () => {
    const place = workspace();
    const set = await place.runHere(["secrets", "set", "T", "--user", "Ana", "--stdin"], {
      env: withoutKeychain(place),
      input: "hers",
    });
    expect(set).toMatchObject({ code: 0, stdout: "secret://user/T\n" });
    expect(readFileSync(join(place.home, "secrets", "%41na", "T"), "utf8")).toBe("hers\n");
  });

  it("takes no value from the command line, and repeats none", async () => {
    const place = workspace();
    for (const args of [
      ["set", "T", "canary-value"],
      ["set", "T=canary-value"],
      ["set"],
      ["set", "../T"],
      ["nonsense"],
      ["check", "T"],
    ]) {
      const { code, stdout, stderr } = await place.runHere(["secrets", ...args], { env: withoutKeychain(place) });
      expect([args, code]).toEqual([args, 2]);
      expect(stdout + stderr).not.toContain("canary-value");
    }
    const refused = await place.runHere(["secrets", "set", "T"], { input: "canary-value" });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("--stdin") });
    expect((await place.runHere(["secrets", "set", "T", "--stdin"], { input: "\n" })).stderr).toContain(
      "The value is empty",
    );
    expect((await place.runHere(["secrets", "set", "T", "--stdin"], { input: "x".repeat(70_000) })).stderr).toContain(
      "larger than 64 KiB",
    );
  });

  it("reads what is typed without an echo, and takes it back", async () => {
    const typed = async (...chunks: string[]): Promise<{ value: Promise<string>; shown: string; raw: boolean[] }> => {
      const raw: boolean[] = [];
      const keys = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (mode: boolean) => raw.push(mode) });
      const prompts = new PassThrough();
      // A terminal's stream, as far as it is used here.
      const value = readSecret(keys as unknown as NodeJS.ReadStream, { fromPipe: false, prompt: "Value: ", prompts });
      for (const chunk of chunks) keys.write(chunk);
      await value.catch(() => {});
      return { value, shown: String(prompts.read() ?? ""), raw };
    };
    const good = await typed("abX\u007f", "cä😀", "\r", "ignored");
    expect(await good.value).toBe("abcä😀");
    expect([good.shown, good.raw]).toEqual(["Value: \n", [true, false]]);
    expect(await (await typed("wrong\u0015right\n")).value).toBe("right");
    await expect((await typed("half\u0003")).value).rejects.toThrow("Nothing was stored.");
    await expect((await typed("\r")).value).rejects.toThrow("The value is empty");
  });

  it.skipIf(!hasScript())("shows nothing of it on a real terminal", async () => {
    const place = workspace();
    // `script` gives the command a terminal of its own and shows what appears on it.
    const command = `${process.execPath} ${MAIN} secrets set MY_TOKEN`;
    const env = { ...process.env, HOME: place.home, TOOLCRIB_HOME: place.home, PATH: withoutKeychain(place)["PATH"] };
    const child = spawn("/usr/bin/script", ["-qec", command, "/dev/null"], {
      cwd: place.dir,
      env: { ...env, SHELL: "/bin/sh" },
    });
    const shown = text(child.stdout);
    child.stdout.once("data", () => setTimeout(() => child.stdin.write("canary-value\r"), 300));
    await new Promise((done) => child.on("close", done));
    expect(await shown).toContain("secret://file/~/secrets/MY_TOKEN");
    expect(await shown).not.toContain("canary");
    expect(readFileSync(join(place.home, "secrets", "MY_TOKEN"), "utf8")).toBe("canary-value\n");
  });
});

function hasScript(): boolean {
  try {
    execFileSync("/usr/bin/script", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return !isMissing("questions on a terminal", "no program `script`");
  }
}
