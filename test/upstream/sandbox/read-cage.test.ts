import { describe, expect, it } from "vitest";
import { SandboxSchema } from "../../../src/model/server-spec.ts";
import { bytesOf, readSandbox } from "../../../src/upstream/sandbox/sandbox-settings.ts";

const read = (entry: unknown): ReturnType<typeof readSandbox> =>
  readSandbox(SandboxSchema.parse(entry), "/srv/config", { HOME: "/home/anna" });

describe("readCage", () => {
  it("[cage-01a] takes a word", () => {
    for (const kind of ["none", "bubblewrap", "container"]) {
      expect(read(kind)).toEqual({ kind, read: [], write: [], network: "none" });
    }
  });

  it("[cage-01a] takes an object, with paths from the folder of the config", () => {
    const entry = { read: ["docs", "/opt/x/../y", "~/notes", "~"], write: ["./out", "out"], network: "host", pids: 20 };
    expect(read(entry)).toEqual({
      kind: "bubblewrap",
      read: ["/srv/config/docs", "/opt/y", "/home/anna/notes", "/home/anna"],
      write: ["/srv/config/out"],
      network: "host",
      pids: 20,
    });
  });

  it("[cage-01a] is a container where an image is named, unless another kind is", () => {
    expect(read({ image: "node:24" })).toMatchObject({ kind: "container", image: "node:24", network: "none" });
    expect(read({ image: "node:24", kind: "none" }).kind).toBe("none");
    expect(read({}).kind).toBe("bubblewrap");
  });

  it("[cage-01a] puts the hub's variables into paths, and no secrets", () => {
    expect(read({ read: ["${HOME}/x", "${NONE:-docs}/y"] }).read).toEqual(["/home/anna/x", "/srv/config/docs/y"]);
    for (const path of ["${NONE}/x", "secret://env/HOME"]) {
      expect(() => read({ write: [path] })).toThrow(expect.objectContaining({ code: "invalid_config" }));
    }
  });

  it("[cage-02d] takes no time that no timer can wait for", () => {
    expect(read({ timeout: 2 ** 31 - 1 }).timeout).toBe(2 ** 31 - 1);
    expect(() => read({ timeout: 2 ** 31 })).toThrow("timeout");
  });

  it("leaves a tilde alone that is part of a name", () => {
    expect(read({ read: ["~other/x", "a~"] }).read).toEqual(["/srv/config/~other/x", "/srv/config/a~"]);
  });

  it.each([
    [1000, 1000],
    ["1000", 1000],
    ["4k", 4096],
    ["512m", 512 * 1024 ** 2],
    ["512MB", 512 * 1024 ** 2],
    ["512MiB", 512 * 1024 ** 2],
    ["2G", 2 * 1024 ** 3],
    ["1t", 1024 ** 4],
  ])("reads the size %s", (size, bytes) => {
    expect(bytesOf(size)).toBe(bytes);
    expect(read({ memory: size }).memory).toBe(bytes);
  });
});
