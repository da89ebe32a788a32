import { describe, expect, it } from "vitest";
import { childEnvironment } from "../../../src/upstream/link.ts";

const HUB = {
  PATH: "/bin",
  HOME: "/home/me",
  LANG: "C",
  LC_ALL: "C",
  TERM: "xterm",
  NODE_OPTIONS: "--require evil.js",
  LD_PRELOAD: "/evil.so",
  DYLD_INSERT_LIBRARIES: "/evil.dylib",
  NODE_EXTRA_CA_CERTS: "/ca.pem",
  OPENAI_API_KEY: "sk-secret",
  TOOLCRIB_TOKEN: "secret",
  SHELL: "() { evil; }",
};

describe("childEnvironment", () => {
  it("[spine-06c] takes only the minimum from the hub's environment", () => {
    expect(childEnvironment(HUB, {}, "linux")).toEqual({
      PATH: "/bin",
      HOME: "/home/me",
      LANG: "C",
      LC_ALL: "C",
      TERM: "xterm",
    });
  });

  it("[spine-06c] passes what the spec names, and lets it win", () => {
    const named = { PATH: "/own", NODE_OPTIONS: "--max-old-space-size=100", LD_LIBRARY_PATH: "/lib", TOKEN: "t" };
    const environment = childEnvironment(HUB, named, "linux");
    expect(environment).toMatchObject(named);
    expect(environment).not.toHaveProperty("LD_PRELOAD");
  });

  it("keeps what Windows programs need, in any case of letters, once", () => {
    const base = { Path: "C:\\bin", SystemRoot: "C:\\Windows", LD_PRELOAD: "x", ComSpec: "cmd.exe", SECRET: "s" };
    expect(childEnvironment(base, { PATH: "D:\\own" }, "win32")).toEqual({
      PATH: "D:\\own",
      SystemRoot: "C:\\Windows",
      ComSpec: "cmd.exe",
    });
  });
});
