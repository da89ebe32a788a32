/** Takes out what an install put in place: from single clients, or everywhere. All of it or nothing. */
import { mkdir, rmdir } from "node:fs/promises";
import { clientById } from "../../clients/clients.ts";
import type { ChangeSet } from "../../files/change-set/change-set.ts";
import { withLock } from "../../files/lock-file.ts";
import { textWithoutServer } from "../../config/edit-config.ts";
import { ToolcribError } from "../../model/errors.ts";
import { changesDir } from "../changes-dir.ts";
import { removeClientServers } from "../clients/write-client.ts";
import { installLock } from "./install-files.ts";
import type { InstallPlace } from "./install-place.ts";
import { installChanges, withinChanges } from "./registry-changes.ts";
import { installedFile, parseInstalled, renderInstalled } from "./installed-file.ts";
import { forgetKeychainSecret } from "./kept-secrets.ts";
import type { RemovalPlan } from "./plan-removal.ts";
import { restore, restoreLinks } from "./replaced-folders.ts";
import { parseSkillsLock, renderSkillsLock } from "./skills-lock.ts";
import { stopIfAborted } from "./interrupted.ts";

export interface RemovalReport {
  readonly id: string;
  readonly name: string;
  readonly clients: readonly string[];
  readonly folders: readonly string[];
  readonly servers: readonly string[];
  readonly secrets: readonly string[];
  /** Whether the skill itself is gone, and not only from some clients. */
  readonly removed: boolean;
  /** Left, because somebody changed them since. */
  readonly kept: readonly string[];
  /** Files of clients that servers were taken out of. */
  readonly files: readonly { readonly file: string; readonly ids: readonly string[] }[];
  /** Where there is again what was there before the install. */
  readonly restored: readonly string[];
  /** Clients that must be restarted, and how. */
  readonly restart: readonly { readonly name: string; readonly how: string }[];
}

export async function removeSkill(
  plan: RemovalPlan,
  place: InstallPlace,
  options: { readonly force: boolean; readonly signal?: AbortSignal | undefined },
): Promise<RemovalReport> {
  await mkdir(place.home, { recursive: true, mode: 0o700 });
  return withLock(installLock(place.home), async () => {
    const { registry } = place;
    const changes = installChanges(place.home, registry);
    try {
      const taken = await takeOut(changes, plan, place, options);
      if (plan.everywhere && plan.isRegistered) await registry.remove(plan.id, withinChanges(changes));
      await changes.done();
      await restoreLinks(place.home, plan.restored);
      if (plan.everywhere) await registry.sweep();
      // Not before: a secret that is gone cannot be put back.
      for (const { name, stored } of plan.secrets)
        if (stored === "keychain") await forgetKeychainSecret(name, place.env);
      return reportOf(plan, taken);
    } catch (error) {
      await changes.undo();
      throw error;
    } finally {
      await rmdir(changesDir(place.home)).catch(() => undefined);
    }
  });
}

type Taken = Pick<RemovalReport, "kept" | "files">;

async function takeOut(
  changes: ChangeSet,
  plan: RemovalPlan,
  { home }: InstallPlace,
  { force, signal }: { readonly force: boolean; readonly signal?: AbortSignal | undefined },
): Promise<Taken> {
  const files: { file: string; ids: readonly string[] }[] = [];
  const kept: string[] = plan.keptFolders.map((path) => `${path} (changed since)`);
  const back = new Set(plan.restored.map(({ path }) => path));
  for (const path of plan.folders) if (!back.has(path)) await changes.removeFolder(path);
  await restore(changes, plan.restored);
  for (const { client: id, scope, file: path, ids } of plan.entries) {
    stopIfAborted(signal);
    const client = clientById(id);
    if (client === undefined) throw new ToolcribError("internal", `There is no client ${JSON.stringify(id)} any more.`);
    const request = { client, file: { scope, path }, ids, force };
    const removal = await removeClientServers({ changes, home, ...request });
    if (removal.removed.length > 0) files.push({ file: path, ids: removal.removed });
    for (const each of removal.kept) {
      if (each.reason === "edited") kept.push(`${each.id} in ${path} (edited since)`);
    }
  }
  for (const { id, file } of plan.servers) {
    await changes.editFile(file, (text) => (text === null ? null : withoutServer(file, text, id)));
  }
  for (const { stored, file } of plan.secrets) {
    if (stored === "file" && file !== undefined) await changes.editFile(file, () => null);
  }
  if (plan.lockFile !== undefined) {
    const file = plan.lockFile;
    await changes.editFile(file, (text) => {
      if (text === null) return null;
      const lock = { ...parseSkillsLock(file, text) };
      if (plan.everywhere) delete lock[plan.name];
      else if (Object.hasOwn(lock, plan.name)) {
        const { [plan.name]: own } = lock;
        if (own !== undefined) {
          lock[plan.name] = { ...own, clients: own.clients.filter((client) => !plan.clients.includes(client)) };
        }
      }
      return renderSkillsLock(lock);
    });
  }
  const records = installedFile(home);
  await changes.editFile(records, (text) =>
    text === null ? null : renderInstalled(plan.recordsAfter(parseInstalled(records, text))),
  );
  stopIfAborted(signal);
  return { kept, files };
}

/** One that the user took out is gone, as wanted. */
function withoutServer(file: string, text: string, id: string): string {
  try {
    return textWithoutServer(file, text, id);
  } catch (error) {
    if (error instanceof ToolcribError && error.code === "not_found") return text;
    throw error;
  }
}

function reportOf(plan: RemovalPlan, { kept, files }: Taken): RemovalReport {
  return {
    id: plan.id,
    name: plan.name,
    clients: plan.clients,
    folders: plan.folders,
    servers: plan.servers.map(({ id }) => id),
    secrets: plan.secrets.map(({ name }) => name),
    removed: plan.everywhere,
    kept,
    files,
    restored: plan.restored.map(({ path }) => path),
    restart: plan.clients.flatMap((id) => {
      const client = clientById(id);
      return client === undefined ? [] : [{ name: client.name, how: client.afterChange }];
    }),
  };
}
