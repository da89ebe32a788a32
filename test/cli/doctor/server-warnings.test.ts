import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Check, serverChecks, withoutRepeats } from "../../../src/cli/commands/doctor.ts";
import type { RunningHub } from "../../../src/cli/running-hub.ts";

const MAKING = "An image is being made for thing@1.0.0; the next start finds it ready.";

it("[cage-04c] doctor counts no image that is being made, and tells each warning of a server once", () => {
  const info = { id: "a", state: "ready", transport: "stdio", toolCount: 1, warnings: [MAKING, "odd"] };
  // Only what is looked at.
  const running = {
    took: new Map(),
    unreachable: () => [],
    hub: { servers: { list: () => [info] }, config: { servers: [] }, internals: { quarantined: () => [] } },
  } as unknown as RunningHub;
  const early = [`a: ${MAKING}`, "a: odd", "of the hub"].map((message): Check => ({
    area: "hub",
    status: "warn",
    message,
  }));
  const warned = withoutRepeats([...early, ...serverChecks(running)]).filter(({ status }) => status === "warn");
  expect(warned.map(({ message }) => message)).toEqual(["of the hub", "odd"]);
  expect(serverChecks(running)[0]?.message).toMatch(/^stdio, 1 tool, protocol /);
});

it("[cage-04c] these are the words of who makes images", () => {
  const source = join(import.meta.dirname, "../../../src/upstream/sandbox/container-image.ts");
  expect(readFileSync(source, "utf8")).toContain(MAKING.slice(0, MAKING.indexOf("thing")));
});
