import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { compileSchema } from "../../src/tools/validator.ts";

it("[agent-01g] validators are let go with their schemas", { retry: 2 }, () => {
  setFlagsFromString("--expose-gc");
  // The flag puts it into contexts that are made from then on.
  const collect = runInNewContext("gc") as () => void;
  let made = 0;
  const heapAfter = (count: number): number => {
    let fitting = 0;
    for (let each = 0; each < count; each++) {
      const property = `a${++made}`;
      const schema = { type: "object", properties: { [property]: { type: "string", minLength: 2 } } };
      if (compileSchema(schema)({ [property]: "x" })) fitting += 1;
    }
    expect(fitting).toBe(0);
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = heapAfter(100);
  const kept = heapAfter(300) - before;
  // 5 kB each is what it was when one instance compiled all of them.
  expect(kept / 300).toBeLessThan(2500);
});
