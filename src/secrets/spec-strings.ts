/** The strings of a server that may hold references, and what each is. */
import type { ServerSpec } from "../model/server-spec.ts";
import { looksLikeCredential } from "./looks-like-secret.ts";

export interface SpecString {
  /** As a person would point at it: `env.TOKEN`, `args[2]`. */
  readonly where: string;
  readonly text: string;
  /**
   * `place`: a program or a folder, where a variable is no secret unless its name says so. `credential`: secret as a
   * whole, whatever stands in it.
   */
  readonly role: "place" | "text" | "credential";
}

export function specStrings(spec: ServerSpec): SpecString[] {
  const strings: SpecString[] = [];
  const add = (where: string, text: string | undefined, role: SpecString["role"]): void => {
    if (text !== undefined) strings.push({ where, text, role });
  };
  add("command", spec.command, "place");
  for (const [index, arg] of (spec.args ?? []).entries()) add(`args[${index}]`, arg, "text");
  add("cwd", spec.cwd, "place");
  add("url", spec.url, "text");
  for (const map of ["env", "headers"] as const) {
    for (const [key, text] of Object.entries(spec[map] ?? {})) {
      add(`${map}.${key}`, text, looksLikeCredential(key) ? "credential" : "text");
    }
  }
  for (const [key, value] of Object.entries(spec.auth ?? {})) {
    if (typeof value !== "string" || key === "type" || key === "header") continue;
    const isSecret = looksLikeCredential(key) || key === "key";
    add(`auth.${key}`, value, isSecret ? "credential" : "text");
  }
  return strings;
}
