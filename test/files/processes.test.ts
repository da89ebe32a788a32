import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, it } from "vitest";
import { isProcessAlive, programName } from "../../src/files/processes.ts";
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

it.runIf(process.platform === "linux")("[counter-04d] a process is named by what it runs", async () => {
  const name = async (command: string, ...args: string[]): Promise<string | undefined> => {
    const child = spawn(command, args, { stdio: "ignore" });
    try {
      await eventually(() => programName(child.pid ?? 0)?.startsWith(command.split("/").at(-1) ?? "") === true);
      return programName(child.pid ?? 0);
    } finally {
      child.kill("SIGKILL");
    }
  };
  expect(await name("sleep", "60")).toBe("sleep");
  expect(await name(process.execPath, "--eval", "setInterval(() => {}, 1000)", "secret")).toBe("node");
  const script = join(import.meta.dirname, "..", "fixtures", "counting-server.mjs");
  expect(await name(process.execPath, script, "secret")).toBe("node counting-server.mjs");
  expect(programName(0)).toBeUndefined();
});
