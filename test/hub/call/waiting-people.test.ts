import { expect, it } from "vitest";
import { createHub } from "../../../src/hub/create/create-hub.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { misbehaving } from "../../support/servers.ts";

it("[joy-01f] a call whose server waits for a person's answer is not ended as silent", async () => {
  const clock = new FakeClock();
  const server = { ...misbehaving("ok"), toolTimeout: 1000 };
  await using hub = await createHub({ mcpServers: { asks: server } }, { clock });
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<{ action: "accept"; content: { name: string } }>();
  const session = hub.openSession({
    onElicit: () => {
      asked.resolve();
      return answer.promise;
    },
  });
  const call = hub.call({ session, name: "asks__ask", arguments: { what: "elicitation" } });
  await asked.promise;
  await clock.advance(60_000);
  answer.resolve({ action: "accept", content: { name: "Ada" } });
  expect(await call).toMatchObject({ ok: true, result: { content: [{ text: expect.stringContaining("Ada") }] } });
});
