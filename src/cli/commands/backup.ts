import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { toolcribHome } from "../../config/find-config.ts";
import { ToolcribError } from "../../model/errors.ts";
import { makeBackup } from "../backup/make-backup.ts";
import type { Invocation } from "../command.ts";
import { commandStore } from "../command-store.ts";

export async function run(invocation: Invocation): Promise<number> {
  const { args, cwd, env, flags, out } = invocation;
  const file = resolve(cwd, args[0] ?? "");
  const existing = await stat(file).catch(() => undefined);
  if (existing?.isDirectory() === true) {
    throw new ToolcribError("invalid_arguments", `${file} is a folder; a backup is one file.`, {
      hint: `toolcrib backup ${args[0] ?? ""}/toolcrib-backup.tar.gz`,
    });
  }
  if (existing !== undefined && !flags.has("force")) {
    throw new ToolcribError("conflict", `There is a file ${file} already.`, { hint: "--force replaces it." });
  }
  const stores = commandStore(invocation, { needsRight: true, needsAll: true });
  try {
    const store = await stores.open({ create: false });
    const withKey = flags.has("withKey");
    const { files, madeAt } = await makeBackup({ home: toolcribHome(env), store, file, withKey });
    const bytes = (await stat(file)).size;
    if (out.json) out.value({ file, madeAt, bytes, files: files.length, store: store?.place ?? null, withKey });
    else {
      out.line(`Saved ${files.length} files to ${file}, ${bytes} bytes.`);
      out.note(
        withKey
          ? "The key is in it: whoever has the file can read the secrets that the store holds. Logins are not in it."
          : "Secrets and logins are not in it. Keep the file to yourself all the same: it says what was called and by whom.",
      );
    }
    return 0;
  } finally {
    await stores.close();
  }
}
