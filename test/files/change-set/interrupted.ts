/** A process that changes several files and folders at once, for tests that kill it in the middle. */
import { join } from "node:path";
import { ChangeSet } from "../../../src/files/change-set/change-set.ts";

const [root = "", journalDir = "", stopAt = "never"] = process.argv.slice(2);
const changes = new ChangeSet({ journalDir });

/** Reaches the point where this process is to die; SIGKILL gives it no chance to clear up. */
function reach(point: string): void {
  if (point === stopAt) process.kill(process.pid, "SIGKILL");
}

function more(point: string): (text: string | null) => string {
  return (text) => {
    reach(point);
    return `${text ?? ""}changed\n`;
  };
}

process.send?.("begun");
for (;;) {
  await changes.editFile(join(root, "a.json"), more("first file"), { backup: true });
  await changes.editFile(join(root, "new/deep/b.json"), more("second file"));
  await changes.editFile(join(root, "gone.json"), () => null);
  await changes.placeFolder(join(root, "skills/one"), join(root, "source"));
  await changes.placeFolder(join(root, "skills/two"), join(root, "source"));
  await changes.removeFolder(join(root, "skills/three"));
  await changes.editFile(join(root, "a.json"), more("first file again"), { backup: true });
  reach("end");
}
