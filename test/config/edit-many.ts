/** A process that edits a config again and again, for tests that run several of it or kill it in the middle. */
import { addServer } from "../../src/config/edit-config.ts";

const [file = "", prefix = "", count = "0"] = process.argv.slice(2);
for (let index = 0; index < Number(count); index++) {
  await addServer(file, `${prefix}${index}`, { command: "x" });
  process.send?.(index);
}
process.disconnect?.();
