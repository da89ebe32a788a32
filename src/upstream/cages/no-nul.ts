import { ToolcribError } from "../../model/errors.ts";
import type { CagedProgram } from "./cage.ts";

/**
 * A NUL ends a text for the system, and for bubblewrap one option: what follows it would be read as options of their
 * own. Configs cannot hold one, but what a reference stands for can. Throws without the text.
 */
export function refuseNul({ command, args, env, cwd }: Omit<CagedProgram, "serverId" | "baseDir">): void {
  const places: (readonly [string, string])[] = [
    ["`command`", command],
    ["`cwd`", cwd ?? ""],
    ...args.map((text, index) => [`\`args[${index}]\``, text] as const),
    ...Object.keys(env).map((name) => ["a name in `env`", name] as const),
    ...Object.entries(env).map(([name, value]) => [`\`env.${name}\``, value] as const),
  ];
  const found = places.find(([, text]) => text.includes("\0"));
  if (found === undefined) return;
  throw new ToolcribError("invalid_config", `${found[0]} holds a NUL character.`, {
    hint: "No program can be given one. Correct the text, or the secret that it stands for.",
    details: { sent: false },
  });
}
