/** Entries of toolcrib.json with other programs' keys, at a hub. */
import { expect, it } from "vitest";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import type { ConfigInput } from "../../../src/model/config.ts";
import { ids, Place, refused, sound, textOf } from "./place.ts";

/** A home whose config has these entries, as they stand. */
function placeWith(mcpServers: Record<string, object>): Place {
  const place = new Place();
  place.write("toolcrib.json", { mcpServers });
  return place;
}

it("[whole-01b] a key that nobody knows is an error of its server; the others start", async () => {
  const hub = await placeWith({ odd: { ...sound(), envFile: ".env" }, own: sound() }).hub();
  expect(await textOf(hub, "own__echo", { text: "hello" })).toBe("hello");
  expect(ids(hub)).toEqual(["odd", "own"]);
  const odd = await hub.servers.get("odd");
  expect(odd).toMatchObject({ state: "failed", lastError: expect.stringContaining('unknown key "envFile"') });
  expect(odd?.lastError).toMatch(/toolcrib\.json:\d+:\d+: mcpServers\.odd\.envFile/);
  expect(hub.config.warnings.map(({ message }) => message)).toContain(
    'unknown key "envFile"; this server is not started',
  );
});

it("[whole-01b] a server whose key was mended starts at the next reload", async () => {
  const place = placeWith({ odd: { ...sound(), envFile: ".env" } });
  const hub = await place.hub();
  place.write("toolcrib.json", { mcpServers: { odd: sound() } });
  await hub.reload();
  expect(await textOf(hub, "odd__echo", { text: "hello" })).toBe("hello");
});

it("[whole-01d] of ten entries one with wrong values stops its server only, and says where and what is allowed", async () => {
  const ten = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`s${index + 1}`, sound()]));
  const wrong = { ...sound(), type: "websocket", disabled: "yes", args: "x" };
  const hub = await placeWith({ ...ten, s4: wrong }).hub();
  await hub.servers.settled();
  const failed = hub.servers.list().filter(({ state }) => state !== "ready");
  expect(failed).toMatchObject([{ id: "s4", state: "failed", toolCount: 0, hint: expect.stringContaining("Correct") }]);
  for (const part of [
    "mcpServers.s4.args: found a string; expected a list of strings",
    'mcpServers.s4.type: found "websocket"; expected "stdio", "http" or "sse"',
    'mcpServers.s4.disabled: found "yes"; expected true or false',
  ])
    expect(failed[0]?.lastError).toMatch(
      new RegExp(`toolcrib\\.json:\\d+:\\d+: ${part.replaceAll(/[[\].]/g, "\\$&")}`),
    );
  expect(hub.view(hub.session).tools.some(({ name }) => name.startsWith("s4__"))).toBe(false);
  expect(await textOf(hub, "s10__echo", { text: "hello" })).toBe("hello");
});

it("[whole-01d] an entry that becomes wrong stops its server at the next reload; the others are not touched", async () => {
  const place = placeWith({ one: sound(), two: { ...sound(), start: "lazy" } });
  const hub = await place.hub();
  await hub.servers.settled();
  const pid = await textOf(hub, "one__pids");
  expect(await textOf(hub, "two__echo", { text: "hello" })).toBe("hello");
  place.write("toolcrib.json", { mcpServers: { one: sound(), two: { ...sound(), start: "lazy", timeout: "long" } } });
  expect(await hub.reload()).toMatchObject({ changed: ["two"], kept: ["one"] });
  const two = await hub.servers.get("two");
  expect(two).toMatchObject({ state: "failed", lastError: expect.stringContaining('found "long"') });
  expect(hub.view(hub.session).tools.some(({ name }) => name.startsWith("two__"))).toBe(false);
  expect(await textOf(hub, "one__pids")).toBe(pid);
  // What was known of it from before is not offered at the next start either.
  const again = await place.hub();
  expect(again.view(again.session).tools.some(({ name }) => name.startsWith("two__"))).toBe(false);
});

it("[whole-01d] what is wrong outside of entries still refuses the file, and everything is named", async () => {
  const place = new Place();
  place.write("toolcrib.json", { limits: { servers: "many" }, mcpServers: { odd: { ...sound(), args: "x" } } });
  const { code, message } = await refused(place.hub());
  expect(code).toBe("invalid_config");
  expect(message).toContain("limits.servers");
  expect(message).toContain("mcpServers.odd.args");
});

it("[whole-01d] a config given in code is refused as a whole: there is a program to tell", async () => {
  const place = new Place();
  // As a program without types would give it.
  const config = { mcpServers: { odd: { command: "x", args: "x" } } } as unknown as ConfigInput;
  const opening = createHub(config, { home: place.home });
  expect((await refused(opening)).message).toContain("mcpServers.odd.args");
});

it("[whole-01a] a disabled server is not started", async () => {
  const hub = await placeWith({ off: { ...sound(), disabled: true } }).hub();
  expect(await hub.servers.get("off")).toMatchObject({ state: "disabled" });
});

it("[whole-01c] approved tools run, and the others ask", async () => {
  const hub = await placeWith({ own: { ...sound(), autoApprove: ["echo"] } }).hub();
  expect(hub.explain("own__echo")?.decision.verdict).toBe("allow");
  expect(hub.explain("own__pids")?.decision.verdict).toBe("ask");
});
