import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A program in `dir` that says it is podman and can do nothing else; its path. */
export function fakeEngine(dir: string): string {
  const program = join(dir, "podman");
  const version = JSON.stringify({ Client: { Version: "4.3.1", APIVersion: "4.3.1", OsArch: "linux/amd64" } });
  writeFileSync(program, `#!/bin/sh\n[ "$1" = version ] && echo '${version}'\nexit 0\n`);
  chmodSync(program, 0o755);
  return program;
}
