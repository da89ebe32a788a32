import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ChangeSet } from "../../../src/files/change-set/change-set.ts";
import { changesDir, mayNeedRecovery, pendingFile } from "../../../src/hub/install/install-files.ts";
import { installedFile, renderInstalled } from "../../../src/hub/install/installed-skills.ts";
import { InstallSecrets, secretName } from "../../../src/hub/install/install-secrets.ts";
import { PendingInstall, recoverInstall } from "../../../src/hub/install/install-journal.ts";
import { registryAt } from "../../support/skill-registry.ts";
import { put, treeOf } from "./skills.ts";

let dir: string;
let home: string;
let bin: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "toolcrib-kept-"));
  home = join(dir, "home/.toolcrib");
  bin = join(dir, "bin");
  for (const folder of [home, bin]) mkdirSync(folder, { recursive: true });
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const place = () => ({ env: { PATH: bin }, home, userHome: join(dir, "home") });

/** A keychain in a file. */
function addKeychain(): () => Record<string, string> {
  const kept = join(dir, "keychain.json");
  writeFileSync(kept, "{}");
  const script = `#!${process.execPath}
    const fs = require("fs"); const [, , action, ...rest] = process.argv; const account = rest.at(-1);
    const all = JSON.parse(fs.readFileSync(${JSON.stringify(kept)}));
    if (action === "lookup") { if (!(account in all)) process.exit(1); process.stdout.write(all[account]); }
    else if (action === "store") all[account] = fs.readFileSync(0, "utf8"); else delete all[account];
    fs.writeFileSync(${JSON.stringify(kept)}, JSON.stringify(all));`;
  writeFileSync(join(bin, "secret-tool"), script);
  chmodSync(join(bin, "secret-tool"), 0o755);
  return () => JSON.parse(readFileSync(kept, "utf8")) as Record<string, string>;
}

function keeper(noted: string[] = []): { changes: ChangeSet; secrets: InstallSecrets } {
  const changes = new ChangeSet({ journalDir: changesDir(home) });
  const onKeychain = async (name: string): Promise<void> => void noted.push(name);
  return { changes, secrets: new InstallSecrets({ changes, place: place(), onKeychain }) };
}

describe("[skill-11c] secrets of an install", () => {
  it("are files of mode 0600 where there is no keychain, and go with the change set", async () => {
    const before = treeOf(dir);
    const { changes, secrets } = keeper();
    expect(await secrets.keep("TOKEN", "value")).toBe("secret://file/~/.toolcrib/secrets/TOKEN");
    expect(readFileSync(join(home, "secrets/TOKEN"), "utf8")).toBe("value\n");
    expect(statSync(join(home, "secrets/TOKEN")).mode & 0o777).toBe(0o600);
    expect(statSync(join(home, "secrets")).mode & 0o777).toBe(0o700);
    await changes.undo();
    rmSync(changesDir(home), { recursive: true });
    expect(treeOf(dir)).toEqual(before);
  });

  it("never replace one that is there: the same value is used again, another gets another name", async () => {
    put(join(home, "secrets/TOKEN"), "theirs\n", 0o600);
    const { changes, secrets } = keeper();
    expect(await secrets.keep("TOKEN", "theirs")).toBe("secret://file/~/.toolcrib/secrets/TOKEN");
    expect(secrets.kept).toEqual([]);
    expect(await secrets.keep("TOKEN", "ours")).toBe("secret://file/~/.toolcrib/secrets/TOKEN_2");
    expect(secrets.kept.map(({ name }) => name)).toEqual(["TOKEN_2"]);
    await changes.done();
    expect(readFileSync(join(home, "secrets/TOKEN"), "utf8")).toBe("theirs\n");
  });

  it("are in the keychain where there is one, noted before they are stored", async () => {
    const stored = addKeychain();
    const noted: string[] = [];
    const { secrets } = keeper(noted);
    expect(await secrets.keep("TOKEN", "value")).toBe("secret://keychain/toolcrib/TOKEN");
    expect(await secrets.keep("TOKEN", "value")).toBe("secret://keychain/toolcrib/TOKEN");
    expect(await secrets.keep("TOKEN", "other")).toBe("secret://keychain/toolcrib/TOKEN_2");
    expect(stored()).toEqual({ TOKEN: "value", TOKEN_2: "other" });
    expect(noted).toEqual(["TOKEN", "TOKEN_2"]);
    expect(existsSync(join(home, "secrets"))).toBe(false);
  });

  it("have names that say whose they are", () => {
    expect(secretName("github", "GITHUB_TOKEN")).toBe("GITHUB_TOKEN");
    expect(secretName("my-server", "api.key")).toBe("MY_SERVER_api_key");
    expect(secretName("1st", "K")).toBe("_1ST_K");
    expect(secretName("x".repeat(80), "K")).toMatch(/^[A-Z_]{1,64}$/);
  });
});

describe("[skill-11e] what a killed install did outside of files", () => {
  /** As a process leaves it that is gone: no process has this id. */
  async function killed(pending: PendingInstall): Promise<void> {
    const text = readFileSync(pendingFile(home), "utf8");
    writeFileSync(pendingFile(home), text.replace(/"pid":\d+/, '"pid":999999999'));
    expect(pending.run).not.toBe("");
  }

  it("is taken back", async () => {
    const stored = addKeychain();
    const pending = new PendingInstall(home);
    const { changes, secrets } = keeper();
    await pending.noteSecret("TOKEN");
    await secrets.keep("TOKEN", "value");
    await killed(pending);
    expect(mayNeedRecovery(home)).toBe(true);
    await recoverInstall({ home, env: { PATH: bin }, registry: registryAt(home) });
    expect(stored()).toEqual({});
    expect(existsSync(pendingFile(home))).toBe(false);
    await changes.undo();
  });

  it("stays if the install had come to its end", async () => {
    const stored = addKeychain();
    const pending = new PendingInstall(home);
    const { secrets } = keeper();
    await pending.noteSecret("TOKEN");
    await secrets.keep("TOKEN", "value");
    const record = { name: "s", source: "/s", digest: "d", folders: [], servers: [], entries: [], lockFile: "/l" };
    put(installedFile(home), renderInstalled({ "skill-s": { ...record, run: pending.run } }) ?? "");
    await killed(pending);
    await recoverInstall({ home, env: { PATH: bin }, registry: registryAt(home) });
    expect(stored()).toEqual({ TOKEN: "value" });
    expect(mayNeedRecovery(home)).toBe(false);
  });

  it("is left alone while that process lives", async () => {
    const stored = addKeychain();
    const pending = new PendingInstall(home);
    const { secrets } = keeper();
    await pending.noteSecret("TOKEN");
    await secrets.keep("TOKEN", "value");
    await recoverInstall({ home, env: { PATH: bin }, registry: registryAt(home) });
    expect(stored()).toEqual({ TOKEN: "value" });
    await pending.undo({ PATH: bin });
    expect(stored()).toEqual({});
  });
});
