import { describe, expect, it } from "vitest";
import { httpClientInfo, socketInode } from "../../../src/doors/http/http-client-info.ts";

describe("[counter-04c] the name of a program that calls over HTTP", () => {
  const of = (headers: Record<string, string>, user?: string, said?: string): string | undefined => {
    const client = httpClientInfo({ headers }, { user }, said);
    return client && `${client.name} ${client.version ?? "-"} ${client.transport ?? "-"}`;
  };

  it.each([
    [{ "user-agent": "curl/8.5.0" }, "curl 8.5.0 http"],
    [{ "user-agent": "python-requests/2.31.0 (linux)" }, "python-requests 2.31.0 http"],
    [{ "user-agent": "node" }, "node - http"],
    [{ "user-agent": "Mozilla/5.0 (X11; Linux x86_64) Chrome/130.0" }, "browser - http"],
    [{ "user-agent": "curl/8", "x-toolcrib-client": "reports/1.2" }, "reports 1.2 http"],
    [{ "user-agent": "curl\u0007/8\u202e" }, "curl 8 http"],
    [{}, "ada - http"],
  ])("%j is %s", (headers, expected) => {
    expect(of(headers, "ada")).toBe(expected);
  });

  it("is nothing without any, is cut, and comes from the query of a WebSocket", () => {
    expect(of({})).toBeUndefined();
    expect(httpClientInfo({ headers: { "user-agent": "x".repeat(500) } }, {})?.name).toHaveLength(100);
    expect(of({ "user-agent": "node" }, undefined, "panel/2")).toBe("panel 2 http");
  });
});

it("[counter-04c] the other end of a connection is found in the system's table by both ports and the user", () => {
  const uid = process.getuid?.() ?? 0;
  const line = (local: string, remote: string, user: number, inode: number): string =>
    `   0: 0100007F:${local} 0100007F:${remote} 01 00000000:00000000 00:00000000 00000000  ${user}        0 ${inode} 1`;
  const table = [
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
    line("1F90", "C350", uid, 1),
    line("C350", "1F91", uid, 2),
    line("C350", "1F90", uid + 1, 3),
    line("C350", "1F90", uid, 4),
  ].join("\n");
  expect(socketInode(table, 0xc350, 0x1f90)).toBe("4");
  expect(socketInode(table, 0xc351, 0x1f90)).toBeUndefined();
});
