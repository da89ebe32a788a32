import { type EditResult, setEnabled } from "../config/edit-config.ts";
import type { Invocation } from "./command.ts";
import { editServerEntry, showEdit } from "./config-target.ts";

/** `enable` and `disable`. */
export async function switchServer(invocation: Invocation, to: "enabled" | "disabled"): Promise<number> {
  const [id = ""] = invocation.args;
  const dryRun = invocation.flags.has("dryRun");
  const edit = (target: string): Promise<EditResult> => setEnabled(target, id, to === "enabled", { dryRun });
  // Without the key it is enabled.
  const updates = { enabled: to === "enabled" ? null : false };
  const { file, result } = await editServerEntry(invocation, id, edit, updates);
  showEdit(invocation, id, file, to === "enabled" ? "Enabled" : "Disabled", result);
  return 0;
}
