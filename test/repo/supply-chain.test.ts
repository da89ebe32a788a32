/** What the package is made of, and what is checked about it. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { BUNDLED } from "../../scripts/bootstrap/build.mjs";
import {
  judgeAudit,
  licenceProblems,
  type Lock,
  PAGE,
  partsOf,
  sbomOf,
  shrinkwrapOf,
} from "../../scripts/bootstrap/supply-chain.mjs";
import { runProgram } from "../support/run-program.ts";

const root = join(import.meta.dirname, "..", "..");
const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as Lock;
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  license: string;
  dependencies: Record<string, string>;
};

describe("[trust-19a] the versions that users get", () => {
  it("are those of the lock file, without the packages of the workshop and without hosts", () => {
    const shrinkwrap = shrinkwrapOf(lock);
    expect(shrinkwrap.packages[""]).not.toHaveProperty("devDependencies");
    expect(shrinkwrap.packages["node_modules/ajv"]?.version).toBe(lock.packages["node_modules/ajv"]?.version);
    expect(shrinkwrap.packages["node_modules/ajv"]?.integrity).toMatch(/^sha512-/);
    expect(Object.keys(shrinkwrap.packages)).not.toContain("node_modules/vitest");
    expect(JSON.stringify(shrinkwrap)).not.toMatch(/https?:|resolved/);
  });

  it("of the protocol SDKs are exact in the manifest too", () => {
    const names = Object.keys(manifest.dependencies).filter((name) =>
      /^@(?:modelcontextprotocol|agentclientprotocol)\//.test(name),
    );
    expect(names).toHaveLength(3);
    for (const name of names) expect(manifest.dependencies[name]).toBe(lock.packages[`node_modules/${name}`]?.version);
  });
});

describe("[trust-19b] the bill of materials", () => {
  const sbom = sbomOf(lock, manifest);

  it("names every installed and every bundled package once, with licence, hash and what it needs", () => {
    const purls = sbom.components.map(({ purl }) => purl);
    expect(new Set(purls).size).toBe(purls.length);
    for (const name of [...BUNDLED, ...PAGE, ...Object.keys(manifest.dependencies)]) {
      expect(purls).toContainEqual(expect.stringMatching(new RegExp(`^pkg:npm/${name.replace("@", "%40")}@\\d`)));
    }
    // Needed by react-dom, which is in the page.
    expect(sbom.components.find(({ name }) => name === "scheduler")).toMatchObject({
      properties: [{ name: "cdx:npm:package:bundled", value: "true" }],
    });
    expect(sbom.components.filter(({ hashes, licenses }) => hashes.length * licenses.length === 0)).toEqual([]);
    expect(sbom.dependencies.map(({ ref }) => ref)).toEqual([sbom.metadata.component["bom-ref"], ...purls]);
    const known = new Set(sbom.dependencies.map(({ ref }) => ref));
    expect(sbom.dependencies.flatMap(({ dependsOn }) => dependsOn).filter((ref) => !known.has(ref ?? ""))).toEqual([]);
    expect(purls.filter((purl) => purl?.includes("/vitest@"))).toEqual([]);
  });

  it("is the same for the same lock file, and has no address in it", () => {
    expect(JSON.stringify(sbomOf(lock, manifest))).toBe(JSON.stringify(sbom));
    expect(JSON.stringify(sbom)).not.toMatch(/https?:|timestamp|serialNumber/);
  });

  it("knows all that the page imports", () => {
    const files = readdirSync(join(root, "web", "src"), { recursive: true, encoding: "utf8" });
    const texts = files
      .filter((name) => /\.tsx?$/.test(name))
      .map((name) => readFileSync(join(root, "web", "src", name), "utf8"));
    const imported = texts.flatMap((text) =>
      [...text.matchAll(/from "((?:@[^/"]+\/)?[^./"][^/"]*)/g)].map(([, name]) => name),
    );
    expect(
      [...new Set(imported)].filter((name) => name?.startsWith("node:") === false && !PAGE.includes(name)),
    ).toEqual([]);
  });
});

describe("[trust-19c] the licence check", () => {
  const withLicence = (license: string | undefined): Lock => ({
    ...lock,
    // Without one it is absent, as npm writes it.
    packages: { ...lock.packages, "node_modules/ajv": JSON.parse(JSON.stringify({ version: "8.0.0", license })) },
  });

  it("passes what there is, and refuses an unknown licence, none, and one that cannot be passed on", () => {
    expect(licenceProblems(lock)).toEqual([]);
    expect(partsOf(lock).length).toBeGreaterThan(100);
    for (const licence of ["GPL-3.0-only", "SEE LICENSE IN LICENSE", "(MIT AND GPL-2.0-only)", undefined]) {
      expect(licenceProblems(withLicence(licence)), licence).toEqual([expect.stringContaining("ajv")]);
    }
    expect(licenceProblems(withLicence("(MIT OR GPL-3.0-or-later)"))).toEqual([]);
  });

  it("looks at bundled packages too", () => {
    const path = "node_modules/kysely";
    const tainted = {
      ...lock,
      packages: { ...lock.packages, [path]: { ...lock.packages[path], license: "AGPL-3.0" } },
    };
    expect(licenceProblems(tainted)).toEqual([expect.stringContaining("kysely")]);
  });
});

describe("[trust-19d] the audit step", () => {
  const advisory = (severity: string): object => ({
    auditReportVersion: 2,
    vulnerabilities: {
      ws: {
        via: [{ name: "ws", title: "Crashes", severity, url: "https://github.com/advisories/GHSA-aaaa-bbbb-cccc" }],
      },
      "needs-ws": { via: ["ws"] },
    },
  });
  const accepted = [{ id: "GHSA-aaaa-bbbb-cccc", why: "Not reached.", until: "2026-12-31" }];

  it("fails for what is high or critical, unless it is accepted for now", () => {
    for (const severity of ["high", "critical"]) {
      expect(judgeAudit(advisory(severity), [], "2026-11-16").problems).toEqual([
        `${severity}: ws: Crashes (GHSA-aaaa-bbbb-cccc)`,
      ]);
      expect(judgeAudit(advisory(severity), accepted, "2026-11-16").problems).toEqual([]);
      expect(judgeAudit(advisory(severity), accepted, "2027-01-01").problems).toHaveLength(1);
    }
    expect(judgeAudit(advisory("moderate"), [], "2026-11-16")).toMatchObject({
      problems: [],
      notes: [expect.any(String)],
    });
  });

  it("says why it is skipped where the registry has no such endpoint, without its address", () => {
    const refused = {
      message: "405 Method Not Allowed - POST https://packages.example.com/-/npm/v1/security/advisories/bulk",
    };
    expect(judgeAudit(refused, [], "2026-11-16")).toEqual({
      skipped: "405 Method Not Allowed",
      problems: [],
      notes: [],
    });
    expect(judgeAudit(undefined, [], "2026-11-16").skipped).toBe("npm gave no report");
  });

  it("as CI runs it, ends in time, with a verdict or a reason", { timeout: 90_000 }, async () => {
    const { stdout } = await runProgram(process.execPath, [join(root, "scripts", "supply-chain.mjs"), "audit"], {
      cwd: root,
    });
    expect(stdout).toMatch(/^Skipped: the registry does not tell of known faults \(.+\)\.$|No known fault|accept one/m);
  });
});
