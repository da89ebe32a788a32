/** Attacks on the audit log of a home by somebody who can write to its folder, with and without `audit.key`. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ChainHead } from "../../src/telemetry/audit/heads.ts";
import type { AuditReport } from "../../src/telemetry/audit/verify.ts";
import { type Finished, type Workspace, workspace } from "./run-cli.ts";

const KEY = "k-5f0b0cb1a6c0d1e2f3a4";
const NEXT_KEY = "k-77aa0cb1a6c0d1e2f3bb";
const REFERENCE = { key: "secret://env/AUDIT_KEY" };

const TOOL = `export default (api) => api.registerTool({
  name: "note", description: "Takes a note.", parameters: { type: "object", properties: { text: { type: "string" } } },
  execute: async () => ({ content: [{ type: "text", text: "noted" }] }),
});`;

class Log {
  readonly place: Workspace = workspace();

  constructor(audit: Record<string, unknown> = {}) {
    this.place.write("tools.mjs", TOOL);
    this.configure(audit);
  }

  get dir(): string {
    return join(this.place.home, "audit");
  }

  configure(audit: Record<string, unknown>): void {
    this.place.configure({}, { plugins: ["./tools.mjs"], audit: { arguments: true, ...audit } });
  }

  run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Finished> {
    const keys = { AUDIT_KEY: KEY, OLD_AUDIT_KEY: KEY };
    return this.place.runHere(args, { env: { ...keys, TOOLCRIB_CONFIG: this.place.configFile, ...env } });
  }

  /** A process that writes a chain, a minute ago. */
  async call(text: string, env: NodeJS.ProcessEnv = {}): Promise<void> {
    expect(await this.run(["call", "note", `text=${text}`], env)).toMatchObject({ code: 0 });
    const past = Date.now() / 1000 - 60;
    for (const file of this.files()) utimesSync(join(this.dir, file), past, past);
  }

  async verify(env: NodeJS.ProcessEnv = {}): Promise<{ ok: boolean; problems: string[]; keys: (string | null)[] }> {
    const { code, stdout } = await this.run(["audit", "verify", "--json"], env);
    const report = JSON.parse(stdout) as AuditReport;
    expect(code).toBe(report.ok ? 0 : 1);
    const all = [...report.problems, ...report.chains.flatMap((chain) => chain.problems)];
    return {
      ok: report.ok,
      problems: all.map(({ severity, what, message }) => `${severity} ${what}: ${message}`),
      keys: report.chains.map((chain) => chain.key),
    };
  }

  files(): string[] {
    return readdirSync(this.dir)
      .filter((name) => name.endsWith(".jsonl"))
      .toSorted();
  }

  lines(file = this.files().at(-1) ?? ""): string[] {
    return readFileSync(join(this.dir, file), "utf8").trimEnd().split("\n");
  }

  write(lines: readonly string[], file = this.files().at(-1) ?? ""): void {
    writeFileSync(join(this.dir, file), lines.map((line) => `${line}\n`).join(""));
    const past = Date.now() / 1000 - 60;
    utimesSync(join(this.dir, file), past, past);
  }

  heads(): { chains: Record<string, ChainHead>; [key: string]: unknown } {
    return JSON.parse(readFileSync(join(this.dir, "heads.json"), "utf8")) as ReturnType<Log["heads"]>;
  }

  writeHeads(heads: object): void {
    writeFileSync(join(this.dir, "heads.json"), JSON.stringify(heads));
  }

  removeHeads(): void {
    rmSync(join(this.dir, "heads.json"));
  }

  /** The newest chain as somebody without the key would write it, with heads.json to go with it. */
  forge(edit: (record: Record<string, unknown>) => void): void {
    const file = this.files().at(-1) ?? "";
    let [prev, seq]: [string | null, number] = [null, -1];
    const lines = this.lines(file).map((line) => {
      const record = JSON.parse(line) as Record<string, unknown>;
      edit(record);
      delete record["hash"];
      record["prev"] = prev;
      const hash = createHash("sha256").update(JSON.stringify(record)).digest("hex");
      [prev, seq] = [hash, Number(record["seq"])];
      return JSON.stringify({ ...record, hash });
    });
    this.write(lines, file);
    const heads = this.heads();
    for (const [chain, head] of Object.entries(heads.chains)) {
      if (head.file === file) heads.chains[chain] = { ...head, seq, hash: prev ?? "" };
    }
    this.writeHeads(heads);
  }
}

const lie = (record: Record<string, unknown>): void => {
  if (typeof record["arguments"] === "string") record["arguments"] = "nothing to see";
};

describe("[trust-16a] removing heads.json and the newest file", () => {
  it("is reported by verify at once, and still after other processes have written", async () => {
    const log = new Log();
    await log.call("first");
    await log.call("stolen");
    expect(await log.verify()).toMatchObject({ ok: true, problems: [] });
    log.removeHeads();
    rmSync(join(log.dir, log.files().at(-1) ?? ""));
    expect((await log.verify()).problems).toEqual([
      expect.stringMatching(/^error removed: the file is missing, so ends/),
    ]);
    await log.call("later");
    await log.call("much later");
    const { ok, problems } = await log.verify();
    expect(ok).toBe(false);
    expect(problems).toEqual([expect.stringContaining("heads.json was removed or damaged before")]);
  });

  it("with all other files is reported where the store knows that there was a log", async () => {
    const log = new Log();
    const set = await log.place.runHere(["secrets", "set", "store/X", "--stdin"], { input: "some-value" });
    expect(set).toMatchObject({ code: 0 });
    await log.call("first");
    expect(await log.verify()).toMatchObject({ ok: true });
    rmSync(log.dir, { recursive: true });
    const database = join(log.place.home, "toolcrib.db");
    const { default: Sqlite } = await import("better-sqlite3");
    const db = new Sqlite(database);
    db.exec("delete from audit_blocks; delete from audit_files");
    db.close();
    expect((await log.verify()).problems).toEqual([expect.stringContaining("the whole log is missing")]);
  });
});

describe("[trust-16b] a keyed log", () => {
  it("catches lines that were rewritten with fitting hashes, which a plain one cannot", async () => {
    const plain = new Log();
    await plain.call("stolen");
    plain.forge(lie);
    expect(await plain.verify()).toMatchObject({ ok: true, keys: [null] });

    const keyed = new Log(REFERENCE);
    await keyed.call("first");
    await keyed.call("stolen");
    expect(await keyed.verify()).toMatchObject({ ok: true, problems: [] });
    keyed.forge(lie);
    const { ok, problems } = await keyed.verify();
    expect(ok).toBe(false);
    expect(problems).toContain("error changed: the line is not what was written");
    expect(problems).toContain("error changed: the file is not what was written");
  });

  it("catches a chain whose header and lines were rewritten as a plain one", async () => {
    const log = new Log(REFERENCE);
    await log.call("first");
    await log.call("stolen");
    log.forge((record) => {
      delete record["key"];
      lie(record);
    });
    expect((await log.verify()).problems).toContainEqual(
      expect.stringMatching(/^error foreign: the chain is not keyed/),
    );

    // All of it, so that nothing keyed is left.
    rmSync(join(log.dir, log.files()[0] ?? ""));
    log.removeHeads();
    expect((await log.verify()).problems).toContainEqual(
      expect.stringMatching(/^error removed: nothing in the log is keyed/),
    );
  });

  it("catches a tail that was cut off together with an edited or stripped heads.json", async () => {
    for (const strip of [false, true]) {
      const log = new Log(REFERENCE);
      await log.call("first");
      await log.call("stolen");
      const [header = ""] = log.lines();
      log.write([header]);
      const { hash, seq } = JSON.parse(header) as { hash: string; seq: number };
      const { signature, key, ...heads } = log.heads();
      const chains = Object.entries(heads.chains).map(([chain, { key: id, ...head }]) => {
        const place = { ...head, ...(strip ? {} : { key: id }) };
        return [chain, head.file === log.files().at(-1) ? { ...place, seq, hash } : place];
      });
      log.writeHeads({ ...heads, chains: Object.fromEntries(chains), ...(strip ? {} : { signature, key }) });
      const expected = strip ? "the file is not signed, although the log is keyed" : "the file is not what was written";
      expect((await log.verify()).problems).toContain(`error changed: ${expected}`);
    }
  });

  it("catches a chain that was emptied or removed, also with a forged record that it was pruned", async () => {
    const log = new Log();
    await log.call("before the key");
    log.configure(REFERENCE);
    await log.call("first");
    await log.call("stolen");
    expect(await log.verify()).toMatchObject({ ok: true, problems: [] });
    const stolen = log.files().at(-1) ?? "";
    writeFileSync(join(log.dir, stolen), "");
    expect((await log.verify()).ok).toBe(false);
    rmSync(join(log.dir, stolen));
    expect((await log.verify()).problems).toEqual(["error removed: the file is missing; heads.json knows it"]);

    const oldest = log.files()[0] ?? "";
    const lines = log.lines(oldest);
    const { hash: _hash, ...last } = JSON.parse(lines.at(-1) ?? "") as Record<string, unknown>;
    const pruned = { ...last, type: "pruned", files: [{ file: stolen, seq: 9, hash: "x" }] };
    const hash = createHash("sha256").update(JSON.stringify(pruned)).digest("hex");
    log.write([...lines.slice(0, -1), JSON.stringify({ ...pruned, hash })], oldest);
    const heads = log.heads();
    for (const [chain, head] of Object.entries(heads.chains)) {
      if (head.file === oldest) heads.chains[chain] = { ...head, hash };
    }
    log.writeHeads(heads);
    expect((await log.verify()).problems).toContain("error removed: the file is missing; heads.json knows it");
  });
});

describe("[trust-16c] the key of a log", () => {
  it("is in no file, and without it nothing is written and verify says what it cannot check", async () => {
    const log = new Log(REFERENCE);
    await log.call("first");
    for (const name of readdirSync(log.dir)) expect(readFileSync(join(log.dir, name), "utf8")).not.toContain(KEY);
    const without = { AUDIT_KEY: undefined };
    const refused = await log.run(["call", "note", "text=unseen"], without);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain("The audit log cannot be keyed, so nothing is started");
    expect(log.files()).toHaveLength(1);
    const blind = await log.run(["audit", "verify"], without);
    expect(blind.code).toBe(1);
    expect(blind.stdout).toContain("cannot be checked without the key");
    expect(await log.run(["call", "note", "text=unseen"], { AUDIT_KEY: "short" })).toMatchObject({
      stderr: expect.stringContaining("at least 16") as string,
    });
    expect((await log.run(["audit", "verify"])).stdout).toMatch(/^ok: 1 chain \(1 keyed\)/);
  });

  it("can be changed: older chains verify while the old key is named", async () => {
    const log = new Log(REFERENCE);
    await log.call("first");
    const rotated = { ...REFERENCE, oldKeys: ["secret://env/OLD_AUDIT_KEY"] };
    log.configure(rotated);
    const env = { AUDIT_KEY: NEXT_KEY };
    await log.call("second", env);
    const { ok, problems, keys } = await log.verify(env);
    expect({ ok, problems }).toEqual({ ok: true, problems: [] });
    expect(new Set(keys).size).toBe(2);
    log.configure(REFERENCE);
    expect((await log.verify(env)).problems).toEqual([expect.stringContaining("cannot be checked without the key")]);
  });

  it("that a process lacks is warned about, and its plain chain is reported", async () => {
    const log = new Log(REFERENCE);
    await log.call("first");
    log.configure({});
    const plain = await log.run(["call", "note", "text=x"]);
    expect(plain).toMatchObject({ code: 0 });
    expect(plain.stderr).toContain("is keyed, and this process writes to it without a key");
    log.configure(REFERENCE);
    expect((await log.verify()).problems).toEqual([expect.stringMatching(/^error foreign: the chain is not keyed/)]);
  });

  it("is not taken as plain text from a config", async () => {
    const log = new Log({ key: KEY });
    const { code, stderr } = await log.run(["list"]);
    expect(code).toBe(1);
    expect(stderr).toContain("a reference such as secret://env/AUDIT_KEY");
    expect(stderr).not.toContain(KEY);
  });
});
