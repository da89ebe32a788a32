import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { isProcessAlive } from "../../src/files/processes.ts";
import { eventually } from "../support/eventually.ts";

it.runIf(process.platform === "linux")(
  "[counter-01c] a process that has ended and was not collected does not count as alive",
  async () => {
    // `sleep` takes the place of the shell, and never asks for the end of its child.
    const parent = spawn("sh", ["-c", "sh -c 'echo $$' & exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
    try {
      const [said] = (await once(parent.stdout, "data")) as [Buffer];
      const pid = Number(said.toString());
      await eventually(() => !isProcessAlive(pid));
      // The system still knows it.
      expect(process.kill(pid, 0)).toBe(true);
      expect(isProcessAlive(parent.pid ?? 0)).toBe(true);
    } finally {
      parent.kill("SIGKILL");
    }
  },
);
