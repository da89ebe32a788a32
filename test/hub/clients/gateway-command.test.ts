import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { gatewayCommand } from "../../../src/hub/clients/gateway-command.ts";

const BIN = resolve(import.meta.dirname, "../../../bin/toolcrib.js");
const env = { HOME: "/home/me", PATH: "" };

describe("[skill-14d] the command that starts Toolcrib", () => {
  it("[trust-01i] is made of absolute paths and names its config, whatever folder a client starts it in", () => {
    const args = [BIN, "mcp", "--config", "/home/me/.toolcrib/toolcrib.json"];
    expect(gatewayCommand({ env })).toEqual({ command: process.execPath, args, startsHub: true });
    expect(gatewayCommand({ env, configFile: null })).toEqual(gatewayCommand({ env }));
    expect(gatewayCommand({ env, configFile: "/home/me/.toolcrib/toolcrib.json" })).toEqual(gatewayCommand({ env }));
    const same = { ...env, TOOLCRIB_HOME: "~/.toolcrib" };
    expect(gatewayCommand({ env: same })).toEqual(gatewayCommand({ env }));
  });

  it("names another config and another home, and a single server", () => {
    expect(gatewayCommand({ env, server: "files", configFile: "/work/toolcrib.json" }).args).toEqual([
      BIN,
      "mcp",
      "--server",
      "files",
      "--config",
      "/work/toolcrib.json",
    ]);
    // Else a toolcrib.json in the folder that the client works in would be found first.
    const inHome = { env, server: "files", configFile: "/home/me/.toolcrib/toolcrib.json" };
    expect(gatewayCommand(inHome).args.slice(-2)).toEqual(["--config", "/home/me/.toolcrib/toolcrib.json"]);
    const moved = { ...env, TOOLCRIB_HOME: "/srv/crib" };
    expect(gatewayCommand({ env: moved, configFile: "/srv/crib/toolcrib.json" })).toEqual({
      command: process.execPath,
      args: [BIN, "mcp", "--config", "/srv/crib/toolcrib.json"],
      env: { TOOLCRIB_HOME: "/srv/crib" },
      startsHub: true,
    });
  });

  it("is not the word alone for a toolcrib that only this shell finds", () => {
    const path = join(resolve(import.meta.dirname, "../../.."), "node_modules/.bin");
    expect(gatewayCommand({ env: { ...env, PATH: path } }).command).toBe(process.execPath);
  });

  it("starts, from any folder and with an empty environment", async () => {
    const { command, args } = gatewayCommand({ env });
    const { stdout } = await promisify(execFile)(command, [args[0] ?? "", "--version"], { cwd: "/", env: {} });
    expect(stdout).toMatch(/^\d+\.\d+\.\d+/);
  });
});
