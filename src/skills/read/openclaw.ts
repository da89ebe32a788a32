/** What OpenClaw's part of the frontmatter says: needs, install steps and hand-over to a tool. Nothing of it is ever run. */
import { isJsonObject } from "../../model/json.ts";
import type { SkillFacts, SkillInstallStep, SkillNeeds } from "../../model/skill.ts";
import type { Fields } from "./fields.ts";

const PLATFORMS: Readonly<Record<string, string>> = {
  windows: "win32",
  win: "win32",
  win64: "win32",
  macos: "darwin",
  mac: "darwin",
  osx: "darwin",
};

/** Words for "anywhere". */
const ANY_PLATFORM = new Set(["all", "any", "*"]);

/** @param block Absent where the file has no vendor's block; some put the same keys at the top. */
export function readNeeds(top: Fields, block: Fields | undefined): SkillNeeds {
  const places = [block, block?.object("requires"), top.object("requires")].filter((place) => place !== undefined);
  const list = (name: string): string[] => unique(places.flatMap((place) => place.list(name)));
  // In the block itself `config` is something else: example settings.
  const required = [block?.object("requires"), top.object("requires")].filter((place) => place !== undefined);
  const os = [...list("os"), ...top.list("os")].map((name) => platformName(name));
  const bins = unique([...list("bins"), ...(top.object("requires") === undefined ? top.list("bins") : [])]);
  return {
    bins,
    anyBins: list("any-bins"),
    env: list("env"),
    config: unique(required.flatMap((place) => place.list("config"))),
    os: os.some((name) => ANY_PLATFORM.has(name)) ? [] : unique(os),
  };
}

export function platformName(name: string): string {
  const lower = name.trim().toLowerCase();
  return Object.hasOwn(PLATFORMS, lower) ? (PLATFORMS[lower] ?? lower) : lower;
}

export function readInstallSteps(block: Fields | undefined): SkillInstallStep[] {
  const value = block?.get("install");
  if (block === undefined || value === undefined || value === null) return [];
  const items = Array.isArray(value) ? value : [value];
  return items.flatMap((item): SkillInstallStep[] => {
    if (typeof item === "string" && item.trim() !== "") return [{ kind: "text", bins: [], step: { text: item } }];
    if (!isJsonObject(item)) {
      block.warn("install", "WRONG_TYPE", "A step of install must be an object; what is not is left out.");
      return [];
    }
    const { kind, id, label, bins } = item;
    return [
      {
        kind: typeof kind === "string" ? kind : typeof id === "string" ? id : "unknown",
        ...(typeof label === "string" ? { label } : {}),
        bins: Array.isArray(bins) ? bins.filter((bin) => typeof bin === "string") : [],
        step: item,
      },
    ];
  });
}

export function readDispatch(top: Fields): SkillFacts["dispatch"] {
  if (!top.has("command-dispatch")) return undefined;
  const kind = top.label("command-dispatch");
  if (kind?.toLowerCase() !== "tool") {
    top.warn("command-dispatch", "DISPATCH_UNKNOWN", 'command-dispatch knows only "tool"; it is left out.');
    return undefined;
  }
  const tool = top.text("command-tool");
  if (tool === undefined) {
    top.warn("command-dispatch", "DISPATCH_WITHOUT_TOOL", "command-dispatch needs a command-tool; it is left out.");
    return undefined;
  }
  const mode = top.text("command-arg-mode") ?? "raw";
  if (mode !== "raw") {
    top.warn("command-arg-mode", "DISPATCH_UNKNOWN", 'command-arg-mode knows only "raw", which is taken.');
  }
  return { tool, argMode: "raw" };
}

function unique(list: readonly string[]): string[] {
  return [...new Set(list)];
}
