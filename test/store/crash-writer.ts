/**
 * A process that writes to the store of the home it is given until it is killed, and prints each write once the store has
 * acknowledged it. `writeSync`, because what was printed must be out before the next write begins.
 */
import { writeSync } from "node:fs";
import { openStore } from "../../src/store/open-store.ts";
import { auditBlock, pin } from "./samples.ts";

const [home = "", name = "", url] = process.argv.slice(2);
const store = await openStore({ home, url });
if (store === undefined) throw new Error("no store");
const done = (what: string): void => void writeSync(1, `${what}\n`);
done("open");
for (let n = 0; ; n++) {
  const id = `${name}-${n}`;
  await store.servers.insert({ id, entry: { n, padding: "x".repeat(n % 5000) }, source: "api" });
  done(`server ${id}`);
  await store.skills.change([{ id, manifest: { n } }], n > 3 ? [`${name}-${n - 3}`] : []);
  done(`skill ${id}`);
  await store.pins.change("/lock", [pin(name, id)], []);
  done(`pin ${id}`);
  await store.audit.append(auditBlock(name, 2 * n, 2));
  done(`audit ${2 * n + 1}`);
  await store.settings.set(name, String(n));
  done(`setting ${n}`);
}
