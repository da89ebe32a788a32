import { expect, it } from "vitest";
import { renderDiagnostic } from "../../src/config/config-document.ts";
import { limitsFromEnv } from "../../src/config/read-config.ts";
import { Workplace } from "./support.ts";

it("[spine-04e] sets limits from the environment, over the file", async () => {
  const place = new Workplace();
  const file = place.write("toolcrib.json", { limits: { callsPerMinute: 5, concurrency: 2, resultBytes: 7 } });
  const env = {
    TOOLCRIB_LIMITS_CALLS_PER_MINUTE: "60",
    TOOLCRIB_LIMITS_RESULTBYTES: " 1024 ",
    TOOLCRIB_LIMITS_SERVERS: "",
  };
  const { config } = await place.load({ file, env });
  expect(config.limits).toMatchObject({ callsPerMinute: 60, concurrency: 2, resultBytes: 1024, servers: 50 });
});

it.each(["0", "-1", "1.5", "many", "1e3", "0x10", "9".repeat(30)])("refuses %s by the variable's name", (value) => {
  const { problems, limits } = limitsFromEnv({ TOOLCRIB_LIMITS_SERVERS: value });
  expect(limits).toEqual({});
  expect(problems.map(renderDiagnostic)).toEqual([
    `environment: TOOLCRIB_LIMITS_SERVERS: found ${JSON.stringify(value)}; expected a whole number above 0`,
  ]);
});

it("warns of what is unknown", () => {
  const { problems, warnings } = limitsFromEnv({ TOOLCRIB_LIMITS_CALL_PER_MINUTE: "5", OTHER: "x" });
  expect(problems).toEqual([]);
  expect(warnings.map(renderDiagnostic)).toEqual([
    "environment: TOOLCRIB_LIMITS_CALL_PER_MINUTE: unknown limit is ignored (did you mean TOOLCRIB_LIMITS_CALLS_PER_MINUTE?)",
  ]);
});
