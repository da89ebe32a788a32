/** `secret://exec/name/argument`: the program that `secrets.exec.name` of the config names prints the secret. */
import { SecretFailure, type SecretProvider } from "../provider.ts";
import { runCommand } from "../run-command.ts";
import { LARGEST_SECRET, withoutFinalNewline } from "../secret-text.ts";

export const execProvider: SecretProvider = {
  name: "exec",
  cached: true,
  async resolve({ path }, { commands, env, baseDir, signal }) {
    const slash = path.indexOf("/");
    const name = slash === -1 ? path : path.slice(0, slash);
    // One argument, slashes and all: names in pass and op have them.
    const extra = slash === -1 ? [] : [path.slice(slash + 1)];
    const [program, ...args] = Object.hasOwn(commands, name) ? (commands[name] ?? []) : [];
    if (program === undefined) {
      const hint = `Set secrets.exec.${name} in the config, such as ["op", "read"].`;
      throw new SecretFailure(`names the command ${JSON.stringify(name)}, which the config does not have`, { hint });
    }
    const result = await runCommand(program, [...args, ...extra], { env, cwd: baseDir, signal });
    if (result === undefined) {
      throw new SecretFailure(`needs the program ${program}, which was not found`, {
        hint: "Install it, or check PATH.",
      });
    }
    if (result.exitCode !== 0) {
      const said = result.complaint === "" ? "" : `: ${result.complaint}`;
      throw new SecretFailure(`was not given: ${program} exited with ${result.exitCode}${said}`);
    }
    const value = withoutFinalNewline(result.stdout);
    if (value === "") throw new SecretFailure(`is empty: ${program} printed nothing`);
    if (value.length > LARGEST_SECRET) throw new SecretFailure(`is larger than ${LARGEST_SECRET / 1024} KiB`);
    return value;
  },
};
