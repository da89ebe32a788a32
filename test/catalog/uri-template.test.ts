import { describe, expect, it } from "vitest";
import { expandTemplate, templateVariables, UriTemplate } from "../../src/catalog/uri-template.ts";

const VALUES = {
  var: "value",
  hello: "Hello World!",
  path: "/foo/bar",
  x: "1024",
  y: "768",
  list: ["red", "green"],
  empty: "",
};

describe("[joy-01a] a URI template with values", () => {
  // Rows of RFC 6570.
  it.each([
    ["{var}", "value"],
    ["{hello}", "Hello%20World%21"],
    ["{+path}/here", "/foo/bar/here"],
    ["{path}/here", "%2Ffoo%2Fbar/here"],
    ["{+hello}", "Hello%20World!"],
    ["X{#var}", "X#value"],
    ["map?{x,y}", "map?1024,768"],
    ["X{.var}", "X.value"],
    ["{/var,x}/here", "/value/1024/here"],
    ["{;x,y,empty}", ";x=1024;y=768;empty"],
    ["{?x,y,empty}", "?x=1024&y=768&empty="],
    ["?fixed=yes{&x}", "?fixed=yes&x=1024"],
    ["{var:3}", "val"],
    ["{list}", "red,green"],
    ["{/list*}", "/red/green"],
    ["{?list*}", "?list=red&list=green"],
    ["{?undef,y}", "?y=768"],
    ["a{#undef}", "a"],
  ])("%s is %s", (template, uri) => {
    expect(expandTemplate(template, VALUES)).toBe(uri);
  });

  it("is one that the template recognises", () => {
    const template = "note://{folder}/{name}{?version}";
    const uri = expandTemplate(template, { folder: "a b", name: "c/d", version: "1" });
    expect(UriTemplate.parse(template)?.matches(uri)).toBe(true);
  });

  it("names its variables, and those that a URI needs", () => {
    expect(templateVariables("note://{folder}/{+name:8}{?v*,folder}")).toEqual([
      { name: "folder", required: true },
      { name: "name", required: true },
      { name: "v", required: false },
    ]);
  });
});
