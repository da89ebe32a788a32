/** Entries of toolcrib.json with other programs' keys, at a hub. */
import { expect, it } from "vitest";
import { ids, Place, sound, textOf } from "./place.ts";

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

it("[whole-01a] a disabled server is not started", async () => {
  const hub = await placeWith({ off: { ...sound(), disabled: true } }).hub();
  expect(await hub.servers.get("off")).toMatchObject({ state: "disabled" });
});

it("[whole-01c] approved tools run, and the others ask", async () => {
  const hub = await placeWith({ own: { ...sound(), autoApprove: ["echo"] } }).hub();
  expect(hub.explain("own__echo")?.decision.verdict).toBe("allow");
  expect(hub.explain("own__pids")?.decision.verdict).toBe("ask");
});
