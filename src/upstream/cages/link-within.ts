import { lstatSync, readlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { isWithin } from "./find-program.ts";

/** As many as the kernel follows. */
const MOST_LINKS = 40;

/**
 * The first link on the way to a path that lies in one of the folders, which are real paths. Step by step, because the
 * real path alone does not say where the links were.
 */
export function linkWithin(path: string, folders: readonly string[]): string | undefined {
  if (folders.length === 0) return undefined;
  let place = "/";
  let steps = stepsOf(path);
  for (let links = 0; steps.length > 0 && links <= MOST_LINKS;) {
    const [step = "", ...rest] = steps;
    const next = join(place, step);
    const facts = step === ".." ? undefined : lstatSync(next, { throwIfNoEntry: false });
    if (facts?.isSymbolicLink() !== true) {
      place = step === ".." ? dirname(place) : next;
      steps = rest;
      continue;
    }
    if (folders.some((folder) => isWithin(place, folder))) return next;
    links++;
    const target = readlinkSync(next);
    if (target.startsWith("/")) place = "/";
    steps = [...stepsOf(target), ...rest];
  }
  return undefined;
}

function stepsOf(path: string): string[] {
  return path.split("/").filter((step) => step !== "" && step !== ".");
}
