import { afterEach, describe, expect, it } from "vitest";
import { metricsRoute } from "../../src/doors/http/status-routes.ts";
import { Emitter } from "../../src/base/emitter.ts";
import type { CallRecord } from "../../src/telemetry/call-record.ts";
import { HubMetrics, MAX_SERVER_LABELS, MAX_TOOL_LABELS, type MeasuredHub } from "../../src/telemetry/metrics.ts";
import { place } from "../doors/http/support.ts";
import { callRecord } from "../support/call-record.ts";

interface Events {
  call: CallRecord;
  server: { readonly info: { readonly id: string; readonly state: string }; readonly previous: string };
}

const opened: HubMetrics[] = [];
afterEach(() => opened.splice(0).forEach((metrics) => metrics.close()));

function scene(servers: readonly { id: string; state: string }[] = [{ id: "files", state: "ready" }]) {
  const events = new Emitter<Events>();
  const hub: MeasuredHub = {
    on: <Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void) => events.on(name, listener),
    servers: () => servers,
    sessions: () => [{ door: "mcp" }, { door: "mcp" }, { door: "rest" }],
    asked: () => [{}, {}],
    measures: () => ({ underWay: [["files", 3]], auditLost: 4 }),
  };
  const metrics = new HubMetrics(hub, "1.2.3");
  opened.push(metrics);
  return { events, metrics, text: async () => (await metrics.text()).body };
}

function call(changes: Partial<CallRecord> = {}): CallRecord {
  return callRecord({ durationMs: 30, resultBytes: 100, ...changes });
}

/** A diff against all lines would hide the one that matters. */
function missing(lines: readonly string[], expected: readonly string[]): string[] {
  return expected.filter((line) => !lines.includes(line));
}

describe("[oper-12a] the metrics", () => {
  it("[joy-18b] count calls and their time by tool, with a bounded number of names", async () => {
    const { events, text } = scene();
    const of = (name: string, changes: Partial<CallRecord> = {}): CallRecord =>
      call({ kind: "tool", origin: { source: "files", name }, ...changes });
    events.emit("call", of("read"));
    events.emit("call", of("read", { outcome: "timeout" }));
    // A caller chooses these: they are no labels.
    events.emit("call", of("file:///secret", { kind: "resource" }));
    events.emit("call", call({ kind: "tool", name: "no_such_tool", origin: null }));
    for (let each = 1; each < MAX_TOOL_LABELS + 20; each++) events.emit("call", of(`tool-${each}`));
    const lines = (await text()).split("\n").filter((line) => line.startsWith("toolcrib_tool_"));
    expect(lines).toContain('toolcrib_tool_calls_total{server="files",tool="read",outcome="ok"} 1');
    expect(lines).toContain('toolcrib_tool_calls_total{server="files",tool="read",outcome="timeout"} 1');
    expect(lines).toContain('toolcrib_tool_seconds_total{server="files",tool="read"} 0.06');
    expect(lines).toContain('toolcrib_tool_calls_total{server="files",tool="other",outcome="ok"} 20');
    expect(lines.join("\n")).not.toMatch(/secret|no_such_tool/);
    expect(lines.filter((line) => line.startsWith("toolcrib_tool_seconds_total{"))).toHaveLength(MAX_TOOL_LABELS + 1);
  });

  it("[counter-04b] count calls by client, with a bounded number of names", async () => {
    const { events, text } = scene();
    for (let each = 0; each < 40; each++) events.emit("call", call({ client: { name: `client-${each}` } }));
    events.emit("call", call({ client: { name: "client-0", version: "2" } }));
    events.emit("call", call());
    const lines = (await text()).split("\n").filter((line) => line.startsWith("toolcrib_client_calls_total{"));
    expect(lines).toContain('toolcrib_client_calls_total{client="client-0"} 2');
    expect(lines).toContain('toolcrib_client_calls_total{client="other"} 10');
    expect(lines).toContain('toolcrib_client_calls_total{client="unknown"} 1');
    expect(lines).toHaveLength(32);
  });

  it("[detect-04c] count calls by outcome, with durations, bytes, findings and limits", async () => {
    const { events, text } = scene();
    events.emit("call", call());
    events.emit("call", call({ durationMs: 2000 }));
    events.emit("call", call({ outcome: "rate_limited", durationMs: 0, resultBytes: 0 }));
    events.emit("call", call({ outcome: "not_found", origin: null }));
    events.emit("call", call({ findings: [{ code: "hidden_text", severity: "high", place: "error", score: 7.5 }] }));
    const lines = (await text()).split("\n");
    expect(
      missing(lines, [
        'toolcrib_calls_total{server="files",outcome="ok"} 3',
        'toolcrib_calls_total{server="files",outcome="rate_limited"} 1',
        'toolcrib_calls_total{server="none",outcome="not_found"} 1',
        'toolcrib_rate_limited_total{server="files"} 1',
        'toolcrib_result_bytes_total{server="files"} 300',
        'toolcrib_findings_total{code="hidden_text",severity="high",place="error"} 1',
        'toolcrib_finding_score_bucket{place="error",le="7"} 0',
        'toolcrib_finding_score_bucket{place="error",le="8"} 1',
        'toolcrib_finding_score_sum{place="error"} 7.5',
        'toolcrib_finding_score_count{place="error"} 1',
        "# TYPE toolcrib_call_duration_seconds histogram",
        'toolcrib_call_duration_seconds_bucket{server="files",le="0.025"} 1',
        'toolcrib_call_duration_seconds_bucket{server="files",le="0.05"} 3',
        'toolcrib_call_duration_seconds_bucket{server="files",le="2.5"} 4',
        'toolcrib_call_duration_seconds_bucket{server="files",le="+Inf"} 4',
        'toolcrib_call_duration_seconds_count{server="files"} 4',
        'toolcrib_call_duration_seconds_sum{server="files"} 2.06',
      ]),
    ).toEqual([]);
  });

  it("go on counting between two looks", async () => {
    const { events, text } = scene();
    events.emit("call", call());
    expect(await text()).toContain('toolcrib_calls_total{server="files",outcome="ok"} 1');
    events.emit("call", call());
    expect(await text()).toContain('toolcrib_calls_total{server="files",outcome="ok"} 2');
  });

  it("show servers, restarts, sessions, calls under way, approvals, lost records, the version and the process", async () => {
    const { events, text } = scene([
      { id: "files", state: "ready" },
      { id: "web", state: "failed" },
    ]);
    for (const previous of ["ready", "restarting", "connecting"]) {
      events.emit("server", { info: { id: "web", state: "restarting" }, previous });
    }
    events.emit("server", { info: { id: "web", state: "failed" }, previous: "restarting" });
    const lines = (await text()).split("\n");
    expect(
      missing(lines, [
        'toolcrib_servers{state="ready"} 1',
        'toolcrib_servers{state="failed"} 1',
        'toolcrib_servers{state="idle"} 0',
        'toolcrib_server_up{server="files"} 1',
        'toolcrib_server_up{server="web"} 0',
        'toolcrib_server_restarts_total{server="web"} 2',
        'toolcrib_sessions{door="mcp"} 2',
        'toolcrib_sessions{door="rest"} 1',
        'toolcrib_calls_running{server="files"} 3',
        "toolcrib_approvals_pending 2",
        "toolcrib_audit_lost_total 4",
        'toolcrib_build_info{version="1.2.3"} 1',
      ]),
    ).toEqual([]);
    expect(lines.some((line) => line.startsWith("process_cpu_seconds_total "))).toBe(true);
    expect(lines.some((line) => line.startsWith("nodejs_eventloop_lag_p99_seconds "))).toBe(true);
  });

  it("have no more labels than there are servers, up to a number, whatever is called", async () => {
    const servers = Array.from({ length: MAX_SERVER_LABELS + 50 }, (_, number) => ({
      id: `server-${number}`,
      state: "idle",
    }));
    const { events, text } = scene(servers);
    for (const { id } of servers) events.emit("call", call({ origin: { source: id, name: "x" } }));
    for (let made = 0; made < 500; made += 1) {
      events.emit("call", call({ name: `made-up-${made}`, session: `s${made}`, user: `u${made}`, origin: null }));
      events.emit("call", call({ origin: { source: `gone-${made}`, name: "x" } }));
      events.emit("call", call({ origin: { source: `toolcrib:skills:${made}`, name: "x" } }));
    }
    events.emit("call", call({ origin: { source: "local", name: "x" } }));
    const body = await text();
    const labels = new Set([...body.matchAll(/toolcrib_calls_total\{server="([^"]*)"/g)].map(([, label]) => label));
    expect(labels.size).toBe(MAX_SERVER_LABELS + 4);
    expect(labels).toEqual(
      new Set([...servers.slice(0, MAX_SERVER_LABELS).map(({ id }) => id), "other", "none", "local", "toolcrib"]),
    );
    expect(body).not.toMatch(/made-up|gone-|u499|s499/);
  });

  it("stop when the hub does", async () => {
    const { events, metrics, text } = scene();
    metrics.close();
    events.emit("call", call());
    expect(await text()).not.toContain('toolcrib_calls_total{server="files"');
  });
});

describe("[oper-12a] /metrics", () => {
  it("answers in Prometheus' text format", async () => {
    const { metrics } = scene();
    const auth = { tokens: [{ token: "reader-0123456789", scopes: ["admin"] }] };
    const { ask } = await place({ auth }, { routes: [metricsRoute(metrics)] });
    expect((await ask("/metrics")).status).toBe(401);
    const answer = await ask("/metrics", { token: "reader-0123456789" });
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(answer.text).toContain("# TYPE toolcrib_calls_total counter");
    expect((await ask("/metrics", { method: "POST", token: "reader-0123456789", body: "" })).status).toBe(405);
    expect((await ask("/metrics/x", { token: "reader-0123456789" })).status).toBe(404);
  });

  it("names servers to nobody from whom some are hidden", async () => {
    const { metrics } = scene();
    const tokens = [{ token: "plain-0123456789" }, { token: "narrow-0123456789", role: "narrow" }];
    const guarded = await place({ auth: { tokens } }, { routes: [metricsRoute(metrics)] });
    for (const { token } of tokens) {
      const answer = await guarded.ask("/metrics", { token });
      expect([answer.status, answer.json().error.code]).toEqual([403, "denied"]);
    }
    const local = await place({}, { routes: [metricsRoute(metrics)] });
    expect((await local.ask("/metrics")).status).toBe(200);
  });
});
