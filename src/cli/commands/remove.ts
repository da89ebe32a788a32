import { type EditResult, removeServer } from "../../config/edit-config.ts";
import type { Invocation } from "../command.ts";
import { editServerEntry, showEdit } from "../config-target.ts";

export async function run(invocation: Invocation): Promise<number> {
  const [id = ""] = invocation.args;
  const dryRun = invocation.flags.has("dryRun");
  const edit = (target: string): Promise<EditResult> => removeServer(target, id, { dryRun });
  const { file, result } = await editServerEntry(invocation, id, edit, null);
  showEdit(invocation, id, file, "Removed", result);
  return 0;
}
