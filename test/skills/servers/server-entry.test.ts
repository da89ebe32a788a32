import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ToolcribError } from "../../../src/model/errors.ts";
import { ServerEntrySchema } from "../../../src/model/server-spec.ts";
import type { RequiredServer, ServerTemplate } from "../../../src/model/skill.ts";
import { parseReferences } from "../../../src/secrets/secret-references.ts";
import { resolveDefault, resolveServerEntry } from "../../../src/skills/servers/server-entry.ts";
import { only, VARIABLES } from "./support.ts";

const SECRET = "secret://keychain/toolcrib/token";

function server(template: ServerTemplate, parameters: RequiredServer["parameters"] = []): RequiredServer {
  return { name: "t", template, parameters };
}

const plain = (name: string) => ({ name, required: true, sensitive: false });
const hidden = (name: string) => ({ name, required: true, sensitive: true });

function refusal(act: () => unknown): ToolcribError {
  try {
    act();
  } catch (error) {
    if (error instanceof ToolcribError) return error;
  }
  throw new Error("was not refused");
}

describe("[skill-03b] defaultOf", () => {
  it("fills variables in", () => {
    const text = "${CWD}|${WORKSPACE}|${HOME}|${SKILL_DIR}|{baseDir}|$${X}";
    expect(resolveDefault({ ...plain("A"), default: text }, VARIABLES)).toBe(
      "/work|/work/space|/home/ann|/skills/one|/skills/one|${X}",
    );
    expect(resolveDefault(plain("A"), VARIABLES)).toBeUndefined();
    expect(resolveDefault({ ...hidden("A"), default: "x" }, VARIABLES)).toBeUndefined();
  });
});

describe("[skill-03d] entryOf", () => {
  it("gives an entry in which a sensitive parameter is its reference", () => {
    const github = only(["github"]);
    const entry = resolveServerEntry(github, { GITHUB_PERSONAL_ACCESS_TOKEN: SECRET }, VARIABLES);
    expect(entry).toEqual({
      command: "npx",
      args: ["-y", "@modelcontextprotocol/server-github"],
      env: { GITHUB_PERSONAL_ACCESS_TOKEN: SECRET },
    });
    expect(ServerEntrySchema.safeParse(entry).success).toBe(true);
  });

  it("delimits a reference inside a longer text", () => {
    const template = {
      url: "https://x.example/mcp",
      headers: { Authorization: "Bearer ${T}x" },
      transport: "sse",
    } as const;
    expect(resolveServerEntry(server(template, [hidden("T")]), { T: SECRET }, VARIABLES)).toEqual({
      url: "https://x.example/mcp",
      headers: { Authorization: `Bearer \${${SECRET}}x` },
      transport: "sse",
    });
  });

  it("fills values, defaults and variables in everywhere", () => {
    const one = server(
      { command: "${BIN}", args: ["--root=${ROOT}", "{baseDir}/s.js"], env: { H: "${HOME}" }, cwd: "${CWD}" },
      [plain("BIN"), { ...plain("ROOT"), default: "${WORKSPACE}/x" }],
    );
    expect(resolveServerEntry(one, { BIN: "node" }, VARIABLES)).toEqual({
      command: "node",
      args: ["--root=/work/space/x", "/skills/one/s.js"],
      env: { H: "/home/ann" },
      cwd: "/work",
    });
    expect(resolveServerEntry(one, { BIN: "node", ROOT: "~/y" }, VARIABLES).args?.[0]).toBe("--root=~/y");
  });

  it("leaves out what an optional parameter without a value would fill", () => {
    const optional = { ...plain("X"), required: false };
    const one = server(
      { command: "t", args: ["-y", "--zone", "${X}", "--a=${X}", "end"], env: { X: "${X}", Y: "1" } },
      [optional],
    );
    expect(resolveServerEntry(one, {}, VARIABLES)).toEqual({ command: "t", args: ["-y", "end"], env: { Y: "1" } });
    expect(resolveServerEntry(one, { X: "z" }, VARIABLES).args).toEqual(["-y", "--zone", "z", "--a=z", "end"]);
  });

  it("names all missing values at once", () => {
    const error = refusal(() =>
      resolveServerEntry(server({ command: "t" }, [plain("A"), hidden("B"), plain("C")]), { C: "" }, VARIABLES),
    );
    expect(error).toMatchObject({ code: "invalid_arguments", details: { missing: ["A", "B", "C"] } });
    expect(error.message).toContain("A, B, C");
  });

  it("refuses text for a sensitive parameter without showing it", () => {
    for (const value of ["hunter-2-text", `${SECRET} hunter-2-text`, "${HUNTER}", "secret://nowhere/hunter-2"]) {
      const error = refusal(() =>
        resolveServerEntry(server({ command: "t", env: { T: "${T}" } }, [hidden("T")]), { T: value }, VARIABLES),
      );
      expect(error.code).toBe("invalid_arguments");
      expect(JSON.stringify([error.message, error.toObject()]).toLowerCase()).not.toContain("hunter");
    }
  });

  it("never makes a reference of plain text", () => {
    const one = server({ command: "t", args: ["a${A}{b}", "${A}"] }, [plain("A")]);
    expect(resolveServerEntry(one, { A: "${HOME}" }, VARIABLES).args).toEqual(["a$${HOME}{b}", "$${HOME}"]);
    // The dollar and the brace come from two sides.
    expect(resolveServerEntry(one, { A: "$" }, VARIABLES).args).toEqual(["a$${b}", "$"]);
    for (const value of [SECRET, "SECRET://env/X", "x secret://y"]) {
      const error = refusal(() => resolveServerEntry(one, { A: value }, VARIABLES));
      expect(error).toMatchObject({ code: "invalid_arguments" });
      expect(error.message).not.toContain(value);
    }
    const split = server({ command: "t", args: ["secre${A}"] }, [plain("A")]);
    expect(refusal(() => resolveServerEntry(split, { A: "t://env/HOME" }, VARIABLES)).code).toBe("invalid_arguments");
    const dollar = server({ command: "t", args: ["$${A", "$", "${A}${T}"] }, [plain("A"), hidden("T")]);
    expect(refusal(() => resolveServerEntry(dollar, { A: "$", T: SECRET }, VARIABLES)).code).toBe("invalid_arguments");
  });

  it("is read back by the config as exactly the text that was given", () => {
    const text = fc.array(fc.constantFrom("$", "{", "}", "${", "$${", "A", ":-", "secret", "://", " ", "x"), {
      maxLength: 8,
    });
    fc.assert(
      fc.property(text, text, (a, b) => {
        const [before, value] = [a.join(""), b.join("")];
        const one = server({ command: "t", args: ["${B}-${A}${B}"] }, [plain("A"), { ...plain("B"), required: false }]);
        let entry;
        try {
          entry = resolveServerEntry(one, { A: `v${value}`, B: before }, VARIABLES);
        } catch (error) {
          expect(error).toBeInstanceOf(ToolcribError);
          expect(before + value).toMatch(/secret|:\/\//);
          return;
        }
        expect(parseReferences(entry.args?.[0] ?? "")).toEqual([`${before}-v${value}${before}`]);
      }),
      { numRuns: 2000 },
    );
  });

  it("says so if there is no template, or none that works", () => {
    expect(refusal(() => resolveServerEntry({ name: "t", parameters: [] }, {}, VARIABLES))).toMatchObject({
      code: "invalid_config",
    });
    for (const url of ["ftp://x", "javascript:alert(1)", "x"])
      expect(refusal(() => resolveServerEntry(server({ url: "${U}" }, [plain("U")]), { U: url }, VARIABLES)).code).toBe(
        "invalid_config",
      );
    const empty = server({ command: "${C}" }, [{ ...plain("C"), required: false }]);
    expect(refusal(() => resolveServerEntry(empty, { C: "" }, VARIABLES)).code).toBe("invalid_config");
  });
});
