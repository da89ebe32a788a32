/** `toolcrib skill <action>`: one file per action. */
import { toolcribHome } from "../../config/find-config.ts";
import { mayNeedRecovery } from "../../hub/install/install-files.ts";
import { ToolcribError } from "../../model/errors.ts";
import type { CommandModule, Invocation } from "../command.ts";

const ACTIONS: Readonly<Record<string, () => Promise<CommandModule>>> = {
  list: () => import("./skill-list.ts"),
  show: () => import("./skill-show.ts"),
  validate: () => import("./skill-validate.ts"),
  import: () => import("./skill-import.ts"),
  install: () => import("./skill-install.ts"),
  update: () => import("./skill-update.ts"),
  remove: () => import("./skill-remove.ts"),
};

/** The action gets the arguments after its own name. */
export async function run(invocation: Invocation): Promise<number> {
  const [action = "", ...args] = invocation.args;
  const load = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
  if (load === undefined) {
    throw new ToolcribError("invalid_arguments", `There is no "skill ${action}".`, {
      hint: `toolcrib skill ${Object.keys(ACTIONS).join(", ")}.`,
    });
  }
  await recover(invocation);
  return (await load()).run({ ...invocation, args });
}

/** Puts right what an install left that was killed in the middle. */
async function recover(invocation: Invocation): Promise<void> {
  const { env, out } = invocation;
  const home = toolcribHome(env);
  if (!mayNeedRecovery(home)) return;
  const [{ recoverInstall }, { withRegistry }] = await Promise.all([
    import("../../hub/install/install-journal.ts"),
    import("./known-skills.ts"),
  ]);
  for (const path of await withRegistry(invocation, (registry) => recoverInstall({ home, env, registry }))) {
    out.warn(`${path} was left half changed by a run that was killed; it is as it was before.`);
  }
}
