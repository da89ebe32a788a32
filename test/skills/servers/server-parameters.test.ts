import { describe, expect, it } from "vitest";
import { parse } from "./support.ts";

describe("[skill-03b] parameters", () => {
  const withParameters = (parameters: unknown, args: string[]): ReturnType<typeof parse> =>
    parse([{ name: "t", command: "t", args, parameters }]);

  it("are required where there is no default", () => {
    const { servers, told } = withParameters(
      { A: {}, B: { default: "b" }, C: { required: false }, D: { required: true, default: 5 }, E: { optional: true } },
      ["${A}${B}${C}${D}${E}"],
    );
    expect(told).toEqual([]);
    expect(servers[0]?.parameters.map(({ name, required, default: text }) => [name, required, text])).toEqual([
      ["A", true, undefined],
      ["B", false, "b"],
      ["C", false, undefined],
      ["D", true, "5"],
      ["E", false, undefined],
    ]);
  });

  it("may be a list, or have a description alone", () => {
    const map = withParameters({ A: "First", B: null }, ["${A}", "${B}"]);
    expect(map.told).toEqual([]);
    expect(map.servers[0]?.parameters).toEqual([
      { name: "A", description: "First", required: true, sensitive: false },
      { name: "B", required: true, sensitive: false },
    ]);
    expect(withParameters([{ name: "A", description: "First" }, "B"], ["${A}", "${B}"])).toEqual(map);
  });

  it("are implied by an undeclared placeholder, with a warning, and sensitive by their name", () => {
    const { servers, told } = withParameters({}, ["${PROJECT}", "${GITHUB_TOKEN}", "${env:REGION}"]);
    expect(servers[0]?.parameters).toEqual([
      { name: "PROJECT", required: true, sensitive: false, implied: true },
      { name: "GITHUB_TOKEN", required: true, sensitive: true, implied: true },
      { name: "REGION", required: true, sensitive: false, implied: true },
    ]);
    expect(told.map(({ code, path }) => [code, path])).toEqual([0, 1, 2].map(() => ["IMPLIED_PARAMETER", [0]]));
  });

  it("CWD, WORKSPACE, HOME, SKILL_DIR and {baseDir} are none", () => {
    const { servers, told } = withParameters(undefined, [
      "${CWD}",
      "${WORKSPACE}/a",
      "${HOME}",
      "${SKILL_DIR}",
      "{baseDir}/x",
    ]);
    expect([servers[0]?.parameters, told]).toEqual([[], []]);
    expect(withParameters({ HOME: "mine" }, []).codes).toEqual(["INVALID_PARAMETER"]);
  });

  it("take a default from ${PARAM:-default}", () => {
    const { servers } = withParameters({ A: { description: "a" }, B: { default: "own" } }, [
      "${A:-x}",
      "${B:-x}",
      "${C:-x}",
    ]);
    expect(servers[0]?.parameters).toMatchObject([
      { name: "A", default: "x", required: false },
      { name: "B", default: "own" },
      { name: "C", default: "x", required: false, implied: true },
    ]);
  });

  it("[skill-03d] are never sensitive with a default, and the warning does not show it", () => {
    const { servers, told, codes } = withParameters(
      { API_KEY: { sensitive: true, default: "hunter-2-text" }, DB_PASSWORD: { default: "hunter-2-text" } },
      ["${API_KEY}", "${DB_PASSWORD}", "${TOKEN:-hunter-2-text}"],
    );
    expect(servers[0]?.parameters.map(({ required, sensitive }) => [required, sensitive])).toEqual(
      [0, 1, 2].map(() => [true, true]),
    );
    expect(JSON.stringify([servers[0]?.parameters, told])).not.toContain("hunter");
    expect(codes.filter((code) => code === "SENSITIVE_DEFAULT")).toHaveLength(3);
    expect(codes).toContain("ASSUMED_SENSITIVE");
  });

  it("[skill-03d] are sensitive by their name, whatever the author says, and where the author says so", () => {
    const { servers, codes } = withParameters(
      {
        AWS_SECRET_ACCESS_KEY: { sensitive: false, default: "x" },
        REGION: { sensitive: true },
        MODE: { default: "m" },
      },
      ["${AWS_SECRET_ACCESS_KEY}${REGION}${MODE}"],
    );
    expect(servers[0]?.parameters.map(({ name, sensitive, default: text }) => [name, sensitive, text])).toEqual([
      ["AWS_SECRET_ACCESS_KEY", true, undefined],
      ["REGION", true, undefined],
      ["MODE", false, "m"],
    ]);
    expect(codes).toEqual(["ASSUMED_SENSITIVE", "SENSITIVE_DEFAULT"]);
  });

  it.each([
    ["a variable", { command: "t", env: { T_TOKEN: "${MODE}" } }],
    ["a header", { url: "https://t.example/mcp", headers: { Authorization: "Bearer ${MODE}" } }],
    ["an option", { command: "t", args: ["--api-key", "${MODE}"] }],
    ["an option with its value", { command: "t", args: ["--token=${MODE}"] }],
  ])("[skill-03d] are sensitive in the place of a credential: %s", (_where, template) => {
    const { servers, codes } = parse([
      { name: "t", ...template, parameters: { MODE: { sensitive: false, default: "x" } } },
    ]);
    expect(servers[0]?.parameters).toEqual([{ name: "MODE", required: true, sensitive: true }]);
    expect(codes).toEqual(["ASSUMED_SENSITIVE", "SENSITIVE_DEFAULT"]);
  });

  it("are plain beside an option that is no credential's", () => {
    const { servers } = withParameters({ MODE: {} }, ["--token-file", "${MODE}", "--verbose", "--mode=${MODE}"]);
    expect(servers[0]?.parameters).toMatchObject([{ name: "MODE", sensitive: false }]);
  });

  it("lose a default that uses something unknown", () => {
    const { servers, codes } = withParameters({ A: { default: "${USER}/x" } }, ["${A}"]);
    expect(servers[0]?.parameters).toEqual([{ name: "A", required: true, sensitive: false }]);
    expect(codes).toEqual(["UNKNOWN_VARIABLE"]);
  });

  it("of a package go to its environment if no text uses them", () => {
    const { servers, told } = parse([{ package: "@a/t", parameters: { T_TOKEN: { sensitive: true } } }]);
    expect([servers[0]?.template?.env, told]).toEqual([{ T_TOKEN: "${T_TOKEN}" }, []]);
    expect(withParameters({ LOST: {} }, []).codes).toEqual(["UNUSED_PARAMETER"]);
  });
});

describe("[skill-03d] what a template may not hold", () => {
  it("a credential that is written out becomes a parameter", () => {
    const { servers, told } = parse([
      { name: "t", command: "t", env: { API_KEY: "sk-very-own-text", MODE: "x" } },
      { name: "u", url: "https://u.example/mcp", headers: { Authorization: "Bearer sk-very-own-text" } },
    ]);
    expect(servers[0]?.template?.env).toEqual({ API_KEY: "${API_KEY}", MODE: "x" });
    expect(servers[1]?.template?.headers).toEqual({ Authorization: "Bearer ${Authorization}" });
    expect(servers.flatMap(({ parameters }) => parameters.map((one) => one.sensitive))).toEqual([true, true]);
    expect(JSON.stringify([servers, told])).not.toContain("sk-very");
  });

  it("[cage-02a] a NUL drops the template, wherever it stands", () => {
    const nul = "a\0--bind";
    for (const entry of [{ env: { A: nul } }, { env: { [nul]: "x" } }, { args: [nul] }, { cwd: nul }]) {
      const { servers, codes } = parse([{ name: "t", command: "t", ...entry }]);
      expect(codes).toContain("INVALID_TEMPLATE");
      expect(servers[0]?.template).toBeUndefined();
    }
  });

  it("a secret of this machine drops the template", () => {
    for (const text of ["secret://keychain/github/me", "${secret://env/GITHUB_TOKEN}", "Secret://env/X"]) {
      const { servers, codes } = parse([{ name: "t", command: "t", env: { HARMLESS: text } }]);
      expect(codes).toContain("REFERENCE_IN_TEMPLATE");
      expect(servers).toEqual([{ name: "t", parameters: [] }]);
    }
  });
});
