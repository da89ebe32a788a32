import { QueryObserver } from "@tanstack/react-query";
import { expect, it, onTestFinished } from "vitest";
import { HubQueries } from "../../web/src/state/hub-queries.ts";

it("a query that is out of date before its first answer has come is asked again", async () => {
  const queryClient = new HubQueries();
  onTestFinished(() => queryClient.clear());
  const answers = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  let asked = 0;
  const observer = new QueryObserver(queryClient, {
    queryKey: ["listLogins", {}],
    queryFn: () => answers[asked++]?.promise ?? "once too often",
  });
  onTestFinished(observer.subscribe(() => {}));
  const outdated = queryClient.invalidateQueries({ queryKey: ["listLogins"] });
  answers[0]?.resolve("before");
  await expect.poll(() => observer.getCurrentResult().data).toBe("before");
  answers[1]?.resolve("after");
  await outdated;
  expect(observer.getCurrentResult().data).toBe("after");
  expect(asked).toBe(2);
});
