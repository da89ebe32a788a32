import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { toolcribHome } from "../../config/find-config.ts";
import { readHubFiles } from "../../hub/hub-file.ts";
import { ToolcribError } from "../../model/errors.ts";
import { DATABASE } from "../backup/home-state.ts";
import { openBackup } from "../backup/open-backup.ts";
import { inTheWay, replaceHome } from "../backup/replace-home.ts";
import { storeAddress } from "../backup/store-address.ts";
import type { Invocation } from "../command.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { args, cwd, env, flags, out } = invocation;
  const file = resolve(cwd, args[0] ?? "");
  const home = toolcribHome(env);
  await assertNoHub(home);
  const address = await storeAddress(invocation);
  await assertNotOpen(home);
  await mkdir(home, { recursive: true, mode: 0o700 });
  const staged = await mkdtemp(join(home, ".restoring-"));
  try {
    const manifest = await openBackup(file, staged);
    const names = await readdir(staged);
    const database = names.includes(DATABASE);
    const moved = await inTheWay(home, names);
    const { hasState, restoreInto } = await import("../../store/restore-store.ts");
    const used = address !== undefined && database && (await hasState(address));
    if ((moved.length > 0 || used) && !flags.has("force")) throw inUse(home, moved, used);
    const aside = join(home, `before-restore-${new Date().toISOString().replace(/[:.]/g, "-")}`);
    if (address !== undefined && database) {
      if (used) await saveDatabase(address, home, aside);
      await restoreInto(address, join(staged, DATABASE));
      await rm(join(staged, DATABASE));
    }
    await replaceHome(home, staged, aside, moved);
    const keptAside = moved.length > 0 || used ? aside : null;
    if (out.json) out.value({ home, madeAt: manifest.madeAt, files: manifest.files.length, movedAside: keptAside });
    else {
      out.line(`Restored ${manifest.files.length} files of ${manifest.madeAt} into ${home}.`);
      if (keptAside !== null) out.line(`What was there before is in ${keptAside}.`);
    }
    if (manifest.store === "postgres" && address === undefined) {
      out.warn(
        "The backup is of a PostgreSQL store, and `store` of the config names none: its database is now a file of the home.",
      );
    }
    return 0;
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
}

/** A hub would go on writing to what is moved away. */
async function assertNoHub(home: string): Promise<void> {
  const [running] = await readHubFiles(home);
  if (running === undefined) return;
  throw new ToolcribError("conflict", `A hub runs on ${home}: process ${running.pid} at ${running.url}.`, {
    hint: "Stop it first, and the clients that started a `toolcrib mcp` of this home.",
  });
}

/** A process of a client has no address, and would go on writing all the same. */
async function assertNotOpen(home: string): Promise<void> {
  const { usersOf } = await import("../../store/restore-store.ts");
  const file = join(home, DATABASE);
  const users = await usersOf(file);
  if (users === undefined) return;
  const who = users.length === 0 ? "another process" : `process ${users.join(", ")}`;
  throw new ToolcribError("conflict", `The database ${file} is open: ${who} uses it.`, {
    hint: "Stop what uses it first, also the clients that started a `toolcrib mcp` of this home.",
    details: { file, processes: users },
  });
}

function inUse(home: string, moved: readonly string[], used: boolean): ToolcribError {
  const what = [...moved, ...(used ? ["the PostgreSQL database"] : [])].join(", ");
  return new ToolcribError("conflict", `${home} has state already: ${what}.`, {
    hint: "--force moves it aside and restores. Or set TOOLCRIB_HOME to another folder.",
    details: { home },
  });
}

/** As a backup of the database alone. */
async function saveDatabase(url: string, home: string, aside: string): Promise<void> {
  const { openStore } = await import("../../store/open-store.ts");
  const store = await openStore({ home, url });
  try {
    await mkdir(aside, { recursive: true, mode: 0o700 });
    await store?.backup(join(aside, DATABASE));
  } finally {
    await store?.close();
  }
}
