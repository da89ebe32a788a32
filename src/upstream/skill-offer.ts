/** The skills that a server offers by the MCP skills extension, as it says; whoever takes them in verifies them. */
import { ToolcribError } from "../model/errors.ts";
import { isJsonObject, type JsonObject } from "../model/json.ts";
import type { Link } from "./link.ts";

const EXTENSION = "io.modelcontextprotocol/skills";
const MAX_PAGES = 100;
const MAX_SKILLS = 1000;

export interface SkillOffer {
  /** Entries as they came. */
  list(): Promise<unknown[]>;
  /** The bytes of a file, of which there may be no more than `size`. */
  read(uri: string, size: number): Promise<Uint8Array>;
}

/** Undefined if the server is not there, or offers none. */
export function skillOffer(link: Link | undefined, timeoutMs: number): SkillOffer | undefined {
  const extensions = link?.agreement.capabilities["extensions"];
  if (link === undefined || !isJsonObject(extensions) || !isJsonObject(extensions[EXTENSION])) return undefined;
  const request = (method: string, params: JsonObject): Promise<JsonObject> =>
    link.peer.request(method, params, { timeoutMs });
  return {
    list: () => listAll(request),
    async read(uri, size) {
      const { contents } = await request("resources/read", { uri });
      const [content]: unknown[] = Array.isArray(contents) ? contents : [];
      const bytes = isJsonObject(content) ? bytesOf(content, size) : undefined;
      if (bytes === undefined) throw new ToolcribError("tool_error", `The server gave no file for ${uri}.`);
      return bytes;
    },
  };
}

async function listAll(request: (method: string, params: JsonObject) => Promise<JsonObject>): Promise<unknown[]> {
  const entries: unknown[] = [];
  let cursor: unknown;
  for (let page = 0; page < MAX_PAGES && entries.length < MAX_SKILLS; page++) {
    const result = await request("skills/list", cursor === undefined ? {} : { cursor });
    if (Array.isArray(result["skills"])) entries.push(...result["skills"]);
    cursor = result["nextCursor"];
    if (typeof cursor !== "string" || cursor === "") break;
  }
  return entries.slice(0, MAX_SKILLS);
}

function bytesOf({ text, blob }: JsonObject, size: number): Uint8Array | undefined {
  if (typeof text === "string") return text.length > size ? undefined : Buffer.from(text, "utf8");
  return typeof blob === "string" && blob.length <= Math.ceil(size / 3) * 4 ? Buffer.from(blob, "base64") : undefined;
}
