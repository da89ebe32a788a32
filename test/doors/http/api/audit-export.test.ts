import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { exportAudit } from "../../../../src/doors/http/api/rest-routes.ts";
import type { HttpRoute } from "../../../../src/doors/http/http-exchange.ts";
import { ToolcribError } from "../../../../src/model/errors.ts";
import { type Place, place } from "../support.ts";

const ADMIN = "admin-0123456789abcdef";
const LINE = JSON.stringify({ type: "call", text: "x".repeat(10_000) });

interface Exported extends Place {
  readonly state: { given: number; ended: boolean };
}

/** A log with as many lines as anybody takes, or that fails. */
async function scene(lines: number, failure?: ToolcribError): Promise<Exported> {
  const state = { given: 0, ended: false };
  const audit: Parameters<typeof exportAudit>[1] = {
    async *exportLines() {
      try {
        if (failure !== undefined) throw failure;
        for (; state.given < lines; state.given++) yield LINE;
      } finally {
        state.ended = true;
      }
    },
  };
  const route: HttpRoute = { path: "/export", access: "read", handle: (exchange) => exportAudit(exchange, audit) };
  const auth = { tokens: [{ token: ADMIN, scopes: ["admin"] }] };
  return { ...(await place({ auth }, { routes: [route] })), state };
}

describe("[oper-04a] the export of the audit log", () => {
  it("is one record to a line", async () => {
    const { ask } = await scene(50);
    const { status, headers, text } = await ask("/export?type=call", { token: ADMIN });
    expect([status, headers["content-type"]]).toEqual([200, "application/x-ndjson"]);
    expect(text).toBe(`${LINE}\n`.repeat(50));
  });

  it("waits for a reader that reads nothing, and stops when it leaves", async () => {
    const { open, state } = await scene(Infinity);
    const reader = await open();
    reader.socket.pause();
    reader.send("GET /export HTTP/1.1", "Host: localhost", `Authorization: Bearer ${ADMIN}`, "", "");
    let before = -1;
    while (state.given !== before) {
      before = state.given;
      await wait(100);
    }
    expect(before).toBeGreaterThan(0);
    expect(before).toBeLessThan(10_000);
    reader.socket.destroy();
    await expect.poll(() => state.ended).toBe(true);
  });

  it("answers HEAD without reading on, and what is wrong at the start as an error", async () => {
    const { ask, state } = await scene(1000);
    expect(await ask("/export", { token: ADMIN, method: "HEAD" })).toMatchObject({ status: 200, text: "" });
    await expect.poll(() => state.ended).toBe(true);
    expect(state.given).toBeLessThan(2);
    const wrong = await scene(1, new ToolcribError("invalid_arguments", "since: is no time"));
    expect((await wrong.ask("/export", { token: ADMIN })).status).toBe(400);
    for (const query of ["?limit=5", "?cursor=x", "?order=newest", "?colour=red", "?type=odd"]) {
      expect((await ask(`/export${query}`, { token: ADMIN })).status, query).toBe(400);
    }
    expect((await ask("/export", { token: ADMIN, method: "POST" })).headers["allow"]).toBe("GET, HEAD");
  });
});
