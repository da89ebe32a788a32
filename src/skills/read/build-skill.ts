/** From the bytes of a SKILL.md and the list of its folder's files to a Skill. Reads nothing and runs nothing. */
import { ToolcribError } from "../../model/errors.ts";
import type { RequiredServer, Skill, SkillFile } from "../../model/skill.ts";
import { parseRequiredServers } from "../servers/parse-servers.ts";
import { readAllowedTools } from "./allowed-tools.ts";
import { decodeText } from "./decode.ts";
import { readDescription } from "./description.ts";
import { dialectOf, KNOWN_KEYS, readExtensions } from "./dialect.ts";
import { skillDigest } from "./digest.ts";
import { Fields } from "./fields.ts";
import { findFrontmatter, type Places } from "./frontmatter.ts";
import { deepFreeze } from "./freeze.ts";
import { readMetadata, vendorBlock } from "./metadata.ts";
import { readName } from "./name.ts";
import { type Notes, shown } from "./notes.ts";
import { readDispatch, readInstallSteps, readNeeds } from "./openclaw.ts";

export function buildSkill(
  bytes: Uint8Array,
  dirName: string,
  files: readonly SkillFile[],
  notes: Notes,
): Omit<Skill, "dir"> {
  const front = findFrontmatter(decodeText(bytes, notes), notes);
  const body = front.body.includes("\r") ? front.body.replaceAll("\r\n", "\n") : front.body;
  const frontmatter = front.value;
  const top = new Fields(frontmatter, [], front, notes);
  tellRenamed(top);
  const metadata = readMetadata(top, frontmatter, front);
  const inside = new Fields(metadata, top.pathOf("metadata"), front, notes);
  const block = vendorBlock(metadata, top, front, notes);
  const name = readName(top, dirName, notes);
  const description = readDescription(top, body, front.bodyLine, notes);
  if (description === undefined) {
    throw new ToolcribError("invalid_config", `The skill "${name}" has neither a description nor any text.`, {
      hint: "Write a description into the frontmatter of SKILL.md and the instructions below it.",
    });
  }
  const dispatch = readDispatch(top);
  return deepFreeze({
    name,
    description,
    dialect: dialectOf(top, block !== undefined),
    ...texts({
      version: top.label("version") ?? inside.label("version"),
      author: top.has("author") ? readAuthor(top) : readAuthor(inside),
      license: top.text("license"),
      compatibility: top.text("compatibility"),
      homepage: block?.text("homepage") ?? top.text("homepage") ?? inside.label("homepage"),
      emoji: block?.text("emoji") ?? top.text("emoji") ?? inside.label("emoji"),
      argumentHint: readArgumentHint(top),
      primaryEnv: block?.text("primary-env"),
      skillKey: block?.text("skill-key"),
    }),
    allowedTools: readAllowedTools(top),
    disableModelInvocation: top.flag("disable-model-invocation", false),
    userInvocable: top.flag("user-invocable", true),
    ...(dispatch === undefined ? {} : { dispatch }),
    always: block?.flag("always", false) ?? false,
    needs: readNeeds(top, block),
    install: readInstallSteps(block),
    servers: readServers(top.has("requires-mcp-servers") ? top : inside, front, notes),
    extensions: readExtensions(top),
    frontmatter,
    files,
    digest: skillDigest(files),
    warnings: notes.sorted(),
    body,
    bytes,
  });
}

function readServers(fields: Fields, places: Places, notes: Notes): RequiredServer[] {
  const value = fields.get("requires-mcp-servers");
  if (value === undefined || value === null) return [];
  const path = fields.pathOf("requires-mcp-servers");
  return parseRequiredServers(value, (code, message, below) => {
    notes.add(code, message, places.lineOf([...path, ...below]));
  });
}

function tellRenamed(top: Fields): void {
  for (const name of KNOWN_KEYS) {
    const written = top.writtenAs(name);
    if (written !== undefined && written !== name) {
      top.warn(name, "KEY_RENAMED", `"${shown(written)}" is read as "${name}".`);
    }
  }
}

/** An author may be an object with a name, as in package.json. */
function readAuthor(fields: Fields): string | undefined {
  return fields.object("author")?.label("name") ?? fields.label("author");
}

/** `argument-hint: [file]` is a list to YAML and text to everybody else. */
function readArgumentHint(top: Fields): string | undefined {
  const value = top.get("argument-hint");
  if (!Array.isArray(value)) return top.text("argument-hint");
  return `[${value.map((item) => (typeof item === "string" ? item : JSON.stringify(item))).join(", ")}]`;
}

/** Without those that are undefined. */
function texts<K extends string>(values: Record<K, string | undefined>): Partial<Record<K, string>> {
  const result: Partial<Record<K, string>> = {};
  for (const key in values) {
    const value = values[key];
    if (value !== undefined) result[key] = value;
  }
  return result;
}
