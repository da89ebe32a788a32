import { describe, expect, it } from "vitest";
import { isOwnMetaKey, ownMeta, ownMetaOf, withoutOwnMeta } from "../../src/model/own-meta.ts";

/** As the specification writes keys of `_meta`: labels with dots between them, a slash, a name. */
const KEY = /^[a-z]([a-z0-9-]*[a-z0-9])?(\.[a-z]([a-z0-9-]*[a-z0-9])?)+\/[a-zA-Z0-9]([\w.-]*[a-zA-Z0-9])?$/;

describe("[whole-27a] keys of our own in _meta", () => {
  it("are written in reverse DNS notation and as before, and read in either", () => {
    const meta = ownMeta("untrusted", { server: "web" });
    expect(Object.keys(meta)).toEqual(["dev.toolcrib/untrusted", "toolcrib/untrusted"]);
    expect(Object.keys(meta)[0]).toMatch(KEY);
    expect(ownMetaOf({ "dev.toolcrib/skill": 1, "toolcrib/skill": 2 }, "skill")).toBe(1);
    expect(ownMetaOf({ "toolcrib/skill": 2 }, "skill")).toBe(2);
    expect(ownMetaOf(undefined, "skill")).toBeUndefined();
  });

  it("are recognised in either spelling, and others are not", () => {
    const others = { "com.example/x": 1, toolcrib: 2, "dev.toolcribs/x": 3, "mytoolcrib/x": 4 };
    expect(withoutOwnMeta({ ...others, ...ownMeta("notes", 1) })).toEqual(others);
    expect(["dev.toolcrib/anything", "toolcrib/anything"].every(isOwnMetaKey)).toBe(true);
  });
});
