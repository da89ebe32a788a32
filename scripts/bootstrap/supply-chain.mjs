// @ts-check
/** What the package is made of, read from the lock file: its shrinkwrap, its bill of materials, licences and known faults. */
import { BUNDLED } from "./build.mjs";

/** Packages whose code is in the page: its own imports, and the style sheet. */
export const PAGE = [
  "@tanstack/react-query",
  "@tanstack/react-router",
  "@tanstack/react-virtual",
  "marked",
  "radix-ui",
  "react",
  "react-dom",
  "tailwindcss",
  "uplot",
];

/** Under these anybody may use and pass on what is in the package, in a closed product too. */
const ALLOWED_LICENCES = new Set([
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "ISC",
  "MIT",
  "Python-2.0",
  "Unlicense",
  "Zlib",
]);
const FAILING = new Set(["high", "critical"]);

/**
 * @typedef {{ version?: string, license?: string, integrity?: string, dev?: boolean, optional?: boolean,
 *   dependencies?: Record<string, string>, optionalDependencies?: Record<string, string>,
 *   peerDependencies?: Record<string, string>, peerDependenciesMeta?: Record<string, { optional?: boolean }>,
 *   [key: string]: unknown }} LockEntry
 * @typedef {{ name: string, version: string, lockfileVersion: number, packages: Record<string, LockEntry> }} Lock
 * @typedef {{ path: string, name: string, entry: LockEntry, bundled: boolean }} Part
 */

/**
 * What a user of the package gets, and nothing of the workshop: npm installs these versions. Hosts are in no lock file of ours.
 * @param {Lock} lock
 */
export function shrinkwrapOf(lock) {
  const { devDependencies: _dev, ...root } = lock.packages[""] ?? {};
  const packages = installedPaths(lock).map((path) => {
    const { funding: _funding, ...entry } = lock.packages[path] ?? {};
    return [path, entry];
  });
  const { name, version, lockfileVersion } = lock;
  return { name, version, lockfileVersion, requires: true, packages: Object.fromEntries([["", root], ...packages]) };
}

/**
 * Everything whose code reaches a user: what npm installs, and what is bundled into dist.
 * @param {Lock} lock @returns {Part[]}
 */
export function partsOf(lock) {
  const installed = new Set(installedPaths(lock));
  const bundled = closure(lock, [...BUNDLED, ...PAGE]);
  const paths = [...new Set([...installed, ...bundled])].sort();
  return paths.map((path) => {
    const entry = lock.packages[path] ?? {};
    return { path, name: nameOf(path), entry, bundled: bundled.has(path) };
  });
}

/**
 * CycloneDX 1.6. The same for the same lock file: without times, random numbers and addresses.
 * @param {Lock} lock @param {{ license?: string, description?: string }} manifest
 */
export function sbomOf(lock, manifest) {
  const parts = partsOf(lock);
  const self = purlOf(lock.name, lock.version);
  const refs = new Map(parts.map(({ path, name, entry }) => [path, purlOf(name, entry.version ?? "")]));
  const unique = new Map(parts.map((part) => [refs.get(part.path), part]));
  const dependsOn = (/** @type {string} */ path, /** @type {LockEntry} */ entry) =>
    [...new Set(neededBy(lock, path, entry).flatMap((each) => refs.get(each) ?? []))].sort();
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      component: {
        type: "application",
        "bom-ref": self,
        name: lock.name,
        version: lock.version,
        description: manifest.description,
        licenses: licencesOf(manifest.license),
        purl: self,
      },
    },
    components: [...unique].map(([ref, { name, entry, bundled }]) => ({
      type: "library",
      "bom-ref": ref,
      ...(name.startsWith("@") ? { group: name.slice(0, name.indexOf("/")) } : {}),
      name: name.slice(name.indexOf("/") + 1),
      version: entry.version,
      hashes: hashesOf(entry.integrity),
      licenses: licencesOf(entry.license),
      purl: ref,
      ...(bundled ? { properties: [{ name: "cdx:npm:package:bundled", value: "true" }] } : {}),
    })),
    dependencies: [
      {
        ref: self,
        dependsOn: [...new Set([...dependsOn("", lock.packages[""] ?? {}), ...bundledRefs(lock, refs)])].sort(),
      },
      ...[...unique].map(([ref, { path, entry }]) => ({ ref, dependsOn: dependsOn(path, entry) })),
    ],
  };
}

/** What may not be passed on as it is. @param {Lock} lock @returns {string[]} */
export function licenceProblems(lock) {
  return partsOf(lock).flatMap(({ name, entry }) => {
    if (isAllowed(entry.license ?? "")) return [];
    return [
      `${name} ${entry.version}: ${entry.license ?? "no licence"} is not on the list of scripts/bootstrap/supply-chain.mjs`,
    ];
  });
}

/**
 * What `npm audit --json` found, in lines to print. An advisory is accepted by its id, with a reason and until a day.
 *
 * @param {unknown} report @param {readonly { id: string, why: string, until: string }[]} accepted
 * @param {string} today Such as 2026-11-16.
 * @returns {{ skipped?: string, problems: string[], notes: string[] }}
 */
export function judgeAudit(report, accepted, today) {
  const { auditReportVersion, vulnerabilities, message, error } = /** @type {any} */ (report ?? {});
  if (auditReportVersion === undefined || typeof vulnerabilities !== "object") {
    const why = [message, error?.summary, error?.code].find((text) => typeof text === "string" && text !== "");
    // Without the address: it is of whatever registry this machine uses.
    return {
      skipped: String(why ?? "npm gave no report").replace(/\s*-?\s*\w* https?:\/\/\S+/g, ""),
      problems: [],
      notes: [],
    };
  }
  /** @type {string[]} */
  const problems = [];
  /** @type {string[]} */
  const notes = [];
  const found = Object.values(vulnerabilities).flatMap((each) =>
    each.via.filter((/** @type {unknown} */ via) => typeof via === "object"),
  );
  for (const { name, title, severity, url } of found) {
    const id = String(url).split("/").at(-1) ?? "";
    const line = `${severity}: ${name}: ${title} (${id})`;
    const known = accepted.find((each) => each.id === id);
    if (known !== undefined && known.until >= today) notes.push(`${line}; accepted until ${known.until}: ${known.why}`);
    else if (FAILING.has(severity))
      problems.push(known === undefined ? line : `${line}; accepted only until ${known.until}`);
    else notes.push(line);
  }
  return { problems: [...new Set(problems)], notes: [...new Set(notes)] };
}

/** @param {Lock} lock */
function installedPaths(lock) {
  return Object.keys(lock.packages).filter((path) => path !== "" && lock.packages[path]?.dev !== true);
}

/** Packages and all that they need, by their paths. @param {Lock} lock @param {readonly string[]} names */
function closure(lock, names) {
  const found = new Set(names.flatMap((name) => resolve(lock, "", name) ?? []));
  for (const path of found) for (const needed of neededBy(lock, path, lock.packages[path] ?? {})) found.add(needed);
  return found;
}

/** @param {Lock} lock @param {string} path @param {LockEntry} entry */
function neededBy(lock, path, entry) {
  const peers =
    path === ""
      ? []
      : Object.keys(entry.peerDependencies ?? {}).filter(
          (name) => entry.peerDependenciesMeta?.[name]?.optional !== true,
        );
  const names = [...Object.keys(entry.dependencies ?? {}), ...Object.keys(entry.optionalDependencies ?? {}), ...peers];
  return names.flatMap((name) => resolve(lock, path, name) ?? []);
}

/** As Node looks for it: beside, and in each folder above. @param {Lock} lock @param {string} from @param {string} name */
function resolve(lock, from, name) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("node_modules/") - 1))) {
    const path = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`;
    if (lock.packages[path] !== undefined) return path;
    if (folder === "") return undefined;
  }
}

/** @param {Lock} lock @param {ReadonlyMap<string, string>} refs */
function bundledRefs(lock, refs) {
  return [...BUNDLED, ...PAGE].flatMap((name) => refs.get(resolve(lock, "", name) ?? "") ?? []);
}

/** @param {string} path */
function nameOf(path) {
  return path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
}

/** @param {string} name @param {string} version */
function purlOf(name, version) {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

/** @param {string | undefined} integrity */
function hashesOf(integrity) {
  const [, content] = /^sha512-(.+)$/.exec(integrity ?? "") ?? [];
  return content === undefined ? [] : [{ alg: "SHA-512", content: Buffer.from(content, "base64").toString("hex") }];
}

/** @param {string | undefined} licence */
function licencesOf(licence) {
  if (licence === undefined) return [];
  return /\s/.test(licence) ? [{ expression: licence }] : [{ license: { id: licence } }];
}

/** `A OR B` needs one of them, `A AND B` both. @param {string} licence @returns {boolean} */
function isAllowed(licence) {
  const text = licence.replace(/^\((.*)\)$/, "$1");
  if (/[()]/.test(text)) return false;
  if (text.includes(" OR ")) return text.split(" OR ").some(isAllowed);
  if (text.includes(" AND ")) return text.split(" AND ").every(isAllowed);
  return ALLOWED_LICENCES.has(text);
}
