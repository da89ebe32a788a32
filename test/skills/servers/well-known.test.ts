import { describe, expect, it } from "vitest";
import { resolveServerEntry } from "../../../src/skills/servers/server-entry.ts";
import { isVariable, parametersUsed } from "../../../src/skills/servers/placeholders.ts";
import { WELL_KNOWN_NAMES, wellKnownByName, wellKnownByPackage } from "../../../src/skills/servers/well-known.ts";
import { isCredentialName } from "../../../src/secrets/credential-names.ts";
import { only, VARIABLES } from "./support.ts";

describe("[skill-03c] the table of well-known servers", () => {
  it("has those that everybody names", () => {
    const names = [
      "filesystem",
      "memory",
      "everything",
      "github",
      "postgres",
      "sqlite",
      "git",
      "fetch",
      "brave-search",
    ];
    for (const name of [...names, "puppeteer", "playwright", "slack", "sequential-thinking", "time"])
      expect(WELL_KNOWN_NAMES).toContain(name);
  });

  it("[whole-21a] has those that skills name most besides", () => {
    const names = ["google-drive", "mysql", "google-search", "gitlab", "slack", "notion", "sentry", "playwright"];
    for (const name of names) expect(WELL_KNOWN_NAMES).toContain(name);
  });

  it.each(WELL_KNOWN_NAMES)("%s is whole", (name) => {
    const known = wellKnownByName(name);
    const server = only([name]);
    expect(server.wellKnown).toBe(true);
    expect(server.description).toMatch(/^[A-Z].*\.$/);
    const used = [...parametersUsed(server.template ?? {})].filter((one) => !isVariable(one));
    expect(server.parameters.map((one) => one.name).toSorted()).toEqual(used.toSorted());
    for (const one of server.parameters) {
      expect(one.description).toMatch(/\.$/);
      if (isCredentialName(one.name)) expect(one.sensitive).toBe(true);
    }
    if (known?.package !== undefined) expect(wellKnownByPackage(known.package)?.name).toBe(name);
    const values = Object.fromEntries(
      server.parameters.map((one) => [one.name, one.sensitive ? `secret://keychain/toolcrib/${one.name}` : "value"]),
    );
    const entry = resolveServerEntry(server, values, VARIABLES);
    expect(JSON.stringify(entry)).not.toMatch(/\$\{(?!secret:)/);
  });

  it("is not fooled by names of Object's own properties", () => {
    for (const name of ["constructor", "__proto__", "toString"]) expect(wellKnownByName(name)).toBeUndefined();
  });
});
