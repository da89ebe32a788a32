import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { containerEngine } from "../../../../src/upstream/sandbox/container-engine.ts";

const PODMAN = { Client: { Version: "4.3.1", APIVersion: "4.3.1", OsArch: "linux/arm64" } };
const DOCKER = { Client: { Version: "28.2.2", ApiVersion: "1.50" }, Server: { Version: "28.1.0", Arch: "amd64" } };

describe("the container engine", () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), "toolcrib-engine-"));
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  /** A folder with programs that answer `version` so, or fail with a complaint. */
  function pathWith(programs: Record<string, object | string>): string {
    const folder = mkdtempSync(join(dir, "bin-"));
    for (const [name, answer] of Object.entries(programs)) {
      const failing = typeof answer === "string" ? `echo "${answer}" >&2; exit 1` : "";
      const script = `#!/bin/sh\n${failing}\n[ "$1" = version ] && echo '${JSON.stringify(answer)}'\n[ "$1" = info ] && echo '["name=rootless"]'\nexit 0\n`;
      writeFileSync(join(folder, name), script);
      chmodSync(join(folder, name), 0o755);
    }
    return `${folder}:/bin:/usr/bin`.replace(/:.*/, "");
  }

  it("is podman, else docker, else the one that is named", async () => {
    const both = pathWith({ podman: PODMAN, docker: DOCKER });
    expect(await containerEngine({}, { PATH: both })).toMatchObject({
      kind: "podman",
      version: "4.3.1",
      arch: "arm64",
    });
    const docker = await containerEngine({ program: "docker" }, { PATH: both });
    expect(docker).toMatchObject({ kind: "docker", version: "28.1.0", arch: "x64", rootless: true });
    const broken = pathWith({ podman: "cannot use its storage", docker: DOCKER });
    expect(await containerEngine({}, { PATH: broken })).toMatchObject({ program: "docker" });
    // A `docker` that is podman in disguise.
    const disguised = join(pathWith({ docker: PODMAN }), "docker");
    expect(await containerEngine({ program: disguised }, { PATH: "/nowhere" })).toMatchObject({ kind: "podman" });
  });

  it("[cage-01b] that cannot be used is an error with the reason of each, and the alternative", async () => {
    const PATH = pathWith({ docker: "Cannot connect to the Docker daemon. Is it running?" });
    await expect(containerEngine({}, { PATH })).rejects.toMatchObject({
      code: "server_unavailable",
      message: expect.stringMatching(/podman: command not found: podman; docker: Cannot connect to the Docker daemon/),
      hint: expect.stringMatching(/podman.*docker.*bubblewrap/),
    });
    const neither = pathWith({ podman: { Client: {} } });
    await expect(containerEngine({ program: "podman" }, { PATH: neither })).rejects.toThrow(
      "neither podman nor docker",
    );
  });
});
