import { describe, expect, it } from "vitest";
import { Redactor } from "../../src/secrets/redactor.ts";
import { Log, type LogFormat, type LogThreshold } from "../../src/telemetry/log.ts";

const SECRET = 'pass"word\\of-many-kinds';

function scene(format: LogFormat, level: LogThreshold = "debug"): { log: Log; lines: string[] } {
  const lines: string[] = [];
  const redactor = new Redactor();
  redactor.addCredential(SECRET);
  const clock = { now: () => Date.parse("2026-11-16T10:00:00.000Z"), after: () => () => {} };
  return { lines, log: new Log({ format, level, clock, write: (line) => void lines.push(line), mask: redactor.mask }) };
}

describe("[oper-13a] a log line", () => {
  it("is one JSON object with time, level and message that no field can replace", () => {
    const { log, lines } = scene("json");
    log.warn("server log", { level: "debug", time: "never", message: "another", server: "files", gone: undefined });
    expect(lines).toHaveLength(1);
    expect(Object.entries(JSON.parse(lines[0] ?? "") as object)).toEqual([
      ["time", "2026-11-16T10:00:00.000Z"],
      ["level", "warn"],
      ["message", "server log"],
      ["server", "files"],
    ]);
  });

  it.each(["json", "pretty"] as const)("hides a secret that quoting would disguise: %s", (format) => {
    const { log, lines } = scene(format);
    log.error(`it said ${SECRET}`, { data: { deep: [`x ${SECRET}`] }, text: SECRET });
    expect(lines.join("")).toContain("[redacted]");
    expect(lines.join("")).not.toContain("of-many-kinds");
  });

  it("is not written below the threshold", () => {
    const { log, lines } = scene("json", "warn");
    log.debug("a");
    log.info("b");
    log.warn("c");
    log.error("d");
    expect(lines.map((line) => (JSON.parse(line) as { message: string }).message)).toEqual(["c", "d"]);
    const silent = scene("json", "silent");
    silent.log.error("e");
    expect(silent.lines).toEqual([]);
  });

  it("stays one line whatever a server says", () => {
    const { log, lines } = scene("pretty");
    log.info("first\nsecond", { data: "a\u2028b", count: 2 });
    expect(lines).toEqual(["10:00:00 info  first second data=a\\u{2028}b count=2\n"]);
  });
});
