/** A file of a skill in a folder of this machine, as it was when the skill was taken in. */
import { join } from "node:path";
import { ToolcribError } from "../../model/errors.ts";
import type { SkillFile } from "../../model/skill.ts";
import { readBack } from "../registry/skill-file.ts";

export async function readVerified(dir: string, files: readonly SkillFile[], path: string): Promise<Uint8Array> {
  const known = files.find((file) => file.path === path);
  if (known === undefined) throw new ToolcribError("not_found", `The skill has no file ${JSON.stringify(path)}.`);
  const read = await readBack(join(dir, ...path.split("/")), known);
  if (read.bytes !== undefined) return read.bytes;
  if (read.reason === "gone") throw new ToolcribError("not_found", `The file ${path} in ${dir} is gone.`);
  throw new ToolcribError("blocked", `The file ${path} in ${dir} was changed since the skill was read.`, {
    hint: "A hub that watches its config takes the change over by itself; hub.skills.refresh() does it at once.",
  });
}
