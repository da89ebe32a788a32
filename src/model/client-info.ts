import { isJsonObject } from "./json.ts";

/** A program that uses the hub. Name, version and title are its own words: they are shown and never decide anything. */
export interface ClientInfo {
  readonly name: string;
  readonly version?: string;
  readonly title?: string;
  /** How it is connected: `stdio`, `http` or `sse`. */
  readonly transport?: string;
  /** Of its process, or of the bridge that it started. */
  readonly pid?: number;
  /** The program of that process's parent, where the system says. */
  readonly program?: string;
  readonly cwd?: string;
  /** The id of the client that the entry in its config was written for: tool names suit that one, whatever it calls itself. */
  readonly entryOf?: string | undefined;
}

/** The part of it that is kept with each call. */
export type ClientName = Pick<ClientInfo, "name" | "version">;

const MAX_LENGTH = 100;
/** Control and format characters: they would change how the text around them is shown. */
const UNSEEN = /[\p{Cc}\p{Cf}]+/gu;

/** The `clientInfo` of a protocol; undefined without a name. Long texts are cut. */
export function clientInfoOf(value: unknown): ClientInfo | undefined {
  if (!isJsonObject(value)) return undefined;
  const name = textOf(value["name"]);
  if (name === undefined) return undefined;
  return { name, version: textOf(value["version"]), title: textOf(value["title"]) };
}

/** For people: `cursor 1.4`. */
export function clientLabel({ name, version }: ClientName): string {
  return version === undefined ? name : `${name} ${version}`;
}

function textOf(value: unknown): string | undefined {
  const text = typeof value === "string" ? value.replaceAll(UNSEEN, " ").trim().slice(0, MAX_LENGTH) : "";
  return text === "" ? undefined : text;
}
