import { describe, expect, it } from "vitest";
import { doorOptions, stateOf, taintText, whoText } from "../../web/src/views/sessions/session-words.ts";

describe("sessions in words", () => {
  it("[oper-09f] says who it is as far as that is known", () => {
    expect(whoText({ user: "ada", role: "reviewer", owner: false })).toBe("ada");
    expect(whoText({ user: null, role: "reviewer", owner: true })).toBe("Unknown user as reviewer");
    expect(whoText({ user: null, role: null, owner: true })).toBe("The hub's user");
    expect(whoText({ user: null, role: null, owner: false })).toBe("Unknown user");
  });

  it("[oper-09f] offers doors in sight and the one of the address, each once", () => {
    const doors = doorOptions([{ door: "mcp" }, { door: "library" }], "acp").map(([door]) => door);
    expect(doors).toEqual(["mcp", "rest", "websocket", "library", "acp"]);
  });

  it("[oper-09f] claims of a taint only what the config makes of it", () => {
    expect(taintText("off")).toMatch(/only recorded/);
    expect(taintText("ask")).toMatch(/need approval/);
    expect(taintText("deny")).toMatch(/are refused/);
    expect(taintText(undefined)).toBe("");
  });

  it("shows open ones unless the address says otherwise", () => {
    expect([undefined, "closed", "all", "odd"].map(stateOf)).toEqual(["open", "closed", "all", "open"]);
  });
});
