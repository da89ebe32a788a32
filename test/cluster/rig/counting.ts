/** The counting server in a rig, and what its files prove. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { ServerEntryInput } from "../../../src/model/server-spec.ts";

const program = resolve(import.meta.dirname, "../../fixtures/counting-server.mjs");

/** Comes back at once and for as long as a test lasts. */
const RESTART = { max: 1000, initialDelay: 100, maxDelay: 400 };

export function countingServer(dir: string, name: string, more: Partial<ServerEntryInput> = {}): ServerEntryInput {
  const files = [`--count=${join(dir, "count")}`, `--lives=${join(dir, "lives")}`];
  return { command: process.execPath, args: [program, ...files, `--name=${name}`], restart: RESTART, ...more };
}

/** One write that the server has done. */
export interface Written {
  readonly id: string;
  readonly pid: number;
  readonly at: number;
}

export function written(dir: string): Written[] {
  return lines(join(dir, "count")).map(([id = "", pid, at]) => ({ id, pid: Number(pid), at: Number(at) }));
}

export interface Life {
  readonly what: "start" | "stop" | "overlap" | "cancelled";
  readonly server: string;
  readonly pid: number;
  readonly at: number;
  /** The other process, or the id of what was cancelled. */
  readonly more: string | undefined;
}

export function lives(dir: string): Life[] {
  return lines(join(dir, "lives")).map(([what, server = "", pid, at, more]) => ({
    // The four words that the server writes.
    what: what as Life["what"],
    server,
    pid: Number(pid),
    at: Number(at),
    more,
  }));
}

/** Pairs of processes of one server that lived at the same time: the later one saw the earlier one. */
export function overlaps(dir: string): { readonly server: string; readonly later: number; readonly earlier: number }[] {
  return lives(dir)
    .filter(({ what }) => what === "overlap")
    .map(({ server, pid, more }) => ({ server, later: pid, earlier: Number(more) }));
}

function lines(file: string): string[][] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split(" "));
}
