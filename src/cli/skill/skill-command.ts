/** `toolcrib skill <action>`. */
import { recoverInterruptedInstall } from "../command-config.ts";
import { type CommandHandler, type Invocation, unknownAction } from "../command.ts";

const ACTIONS: Readonly<Record<string, () => Promise<CommandHandler>>> = {
  list: async () => (await import("./skill-show.ts")).runList,
  show: async () => (await import("./skill-show.ts")).runShow,
  validate: async () => (await import("./skill-validate.ts")).run,
  import: async () => (await import("./skill-import.ts")).run,
  install: async () => (await import("./skill-install.ts")).runInstall,
  update: async () => (await import("./skill-update.ts")).run,
  remove: async () => (await import("./skill-install.ts")).runRemove,
};

/** The action gets the arguments after its own name. */
export async function run(invocation: Invocation): Promise<number> {
  const [action = "", ...args] = invocation.args;
  const load = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
  if (load === undefined) throw unknownAction("skill", action, `Use one of ${Object.keys(ACTIONS).join(", ")}.`);
  await recoverInterruptedInstall(invocation);
  return (await load())({ ...invocation, args });
}
