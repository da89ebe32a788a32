import { expect, it } from "vitest";
import { LazyDoors } from "../../src/cli/serve/http-doors.ts";
import type { OperatorDoors } from "../../src/cli/serve/operator-doors.ts";
import { API_PATH } from "../../src/contract/rest.ts";
import type { HttpRoute } from "../../src/doors/http/http-exchange.ts";
import { place } from "../doors/http/support.ts";

/** Fails as often as it is told to. */
function scene(failures: number): { doors: LazyDoors; opened: OperatorDoors[]; closed: number[] } {
  const opened: OperatorDoors[] = [];
  const closed: number[] = [];
  const api: HttpRoute = { path: API_PATH, access: "any", handle: ({ response }) => void response.end("there") };
  let left = failures;
  const doors = new LazyDoors(async () => {
    if (left-- > 0) throw new Error("A file cannot be read.");
    const open: OperatorDoors = { routes: [api], busy: () => 0, close: async (graceMs) => void closed.push(graceMs) };
    opened.push(open);
    return open;
  });
  return { doors, opened, closed };
}

it("doors that could not be opened are opened by a later request, once", async () => {
  const { doors, opened, closed } = scene(1);
  const { ask, warnings } = await place({}, { routes: doors.routes });
  expect((await ask(API_PATH)).status).toBe(500);
  expect(warnings).toEqual([expect.stringContaining("A file cannot be read.")]);
  const answers = await Promise.all([ask(API_PATH), ask(API_PATH)]);
  expect(answers.map(({ text }) => text)).toEqual(["there", "there"]);
  expect(opened).toHaveLength(1);
  await doors.close(5);
  expect(closed).toEqual([5]);
});

it("doors that cannot be opened keep nothing from closing", async () => {
  const begun = Promise.withResolvers<void>();
  const opening = Promise.withResolvers<OperatorDoors>();
  const doors = new LazyDoors(() => {
    begun.resolve();
    return opening.promise;
  });
  const { ask } = await place({}, { routes: doors.routes });
  const answer = ask(API_PATH);
  await begun.promise;
  const closing = doors.close(0);
  opening.reject(new Error("A file cannot be read."));
  await closing;
  expect((await answer).status).toBe(500);
  await doors.close(0);
  expect((await ask(API_PATH)).status).toBe(503);
});
