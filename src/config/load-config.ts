/** Finds and loads a config: one that was named, or the home's with a project's that is trusted. */
import { realpath } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { ConfigInput } from "../model/config.ts";
import { ToolcribError } from "../model/errors.ts";
import type { Diagnostic, LoadedConfig, ProjectReading, Searched } from "../model/loaded-config.ts";
import { terminalLine } from "../base/visible-text.ts";
import { ConfigDocument, fileDiagnostic } from "./config-document.ts";
import { clientProject, configIn, findConfig, isConfigName, toolcribHome, trustFile } from "./find-config.ts";
import { readConfig, readConfigFile, type ReadText } from "./read-config.ts";
import { mergeProject } from "./project-config.ts";
import { parseConfigText } from "./dialects.ts";
import {
  isTrusted,
  readPlainFile,
  readTrust,
  trustRecordOf,
  saveTrust,
  findForeignWriter,
  trustCommand,
  trustSubjectOf,
} from "./project-trust.ts";

export interface LoadOptions {
  /** Path of a config file of any dialect; searched for if neither this nor `config` is given. */
  readonly file?: string | undefined;
  /** A config given in code. */
  readonly config?: ConfigInput | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Toolcrib's home; `$TOOLCRIB_HOME` or `~/.toolcrib` if absent. */
  readonly home?: string | undefined;
  /** By path: texts to use instead of files that cannot be changed. */
  readonly texts?: ReadonlyMap<string, string> | undefined;
  /** Where it was found before: it is read from there, whatever else would be found by now. */
  readonly searched?: Searched | undefined;
  /** Asked about a project config that is not trusted as it is; without it such a config is left out. */
  readonly onUntrusted?: TrustQuestion | undefined;
  /** The version of the project config that was in use: it stays while a newer one is not trusted. */
  readonly inUse?: ProjectReading | undefined;
}

/** `trust` is written down, `use` is for this time only. */
export type TrustQuestion = (
  project: ProjectReading,
  state: "new" | "changed",
) => Promise<"trust" | "use" | "leave"> | "trust" | "use" | "leave";

/** Of a warning that a project config was left out, or that an earlier version of it is in use. */
export const UNTRUSTED = "untrusted_config";

/** Rejects with `invalid_config` that lists every problem, or `not_found` for a named file that is not there. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const { env, cwd, config, searched } = options;
  const home = options.home ?? toolcribHome(env);
  if (config !== undefined) return readConfig(ConfigDocument.ofValue("library", config), null, { ...options, home });
  const found = searched ?? findConfig({ config: options.file, env, cwd, home });
  if ("named" in found) return readConfigFile(found.named, { ...options, home });
  // The home's may have come since.
  const file = found.home ?? configIn(home) ?? null;
  const base =
    file === null
      ? await readConfig(ConfigDocument.ofValue("library", {}), null, { ...options, home })
      : await readConfigFile(file, { ...options, home });
  const searchedNow = { home: file, project: found.project };
  const loaded = await addProject(base, found.project, { ...options, home });
  const left = searched === undefined && found.project === null ? await untrustedClientFiles({ env, cwd, home }) : [];
  return { ...loaded, warnings: [...loaded.warnings, ...left], searched: searchedNow };
}

/** Says that the files of clients in a project's folder are not used, where they would bring servers. */
export async function untrustedClientFiles(place: {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly home: string;
}): Promise<Diagnostic[]> {
  const { env, cwd, home } = place;
  const found = findConfig({ env, cwd, home });
  const folder = clientProject(cwd, home, env);
  if ("named" in found || found.project !== null || folder === null) return [];
  const { loaded } = await readProject(folder, place);
  if (loaded === undefined || loaded.servers.length === 0) return [];
  const ids = loaded.servers.map(({ id }) => terminalLine(id));
  const message = `clients have servers in this folder, which is not trusted, so they are left out: ${ids.join(", ")}`;
  const hint = `To use them: ${trustCommand(folder)}`;
  return [
    fileDiagnostic(terminalLine(folder), "", { severity: "warning", code: "untrusted_client_files", message, hint }),
  ];
}

type ProjectOptions = Pick<LoadOptions, "env" | "cwd" | "onUntrusted" | "inUse"> & { readonly home: string };

/** The config with the project's, if that is trusted. An untrusted one is left out with a warning. */
async function addProject(base: LoadedConfig, file: string | null, options: ProjectOptions): Promise<LoadedConfig> {
  if (file === null || file === base.file) return base;
  const watched = [file, trustFile(options.home)];
  const leftOut = (message: string, hint: string): LoadedConfig => {
    const warning = {
      severity: "warning",
      code: UNTRUSTED,
      // The name of a folder may contain terminal control characters.
      file: terminalLine(file),
      line: 0,
      column: 0,
      path: "",
      message,
      hint,
    } as const;
    return { ...base, warnings: [...base.warnings, warning], watched };
  };
  if (base.config.cluster !== undefined) {
    return leftOut("a node of a cluster takes no project config; it was left out", "Name it with --config to use it.");
  }
  const { reading, warning } = await readTrustedProject(file, options);
  if (reading === undefined) return leftOut(warning?.message ?? "", warning?.hint ?? "");
  if (reading.failure !== undefined) throw reading.failure;
  const added = mergeProject(warning === undefined ? base : leftOut(warning.message, warning.hint), reading);
  return { ...added, watched: [...watched, ...reading.texts.keys()] };
}

interface TrustVerdict {
  /** The version to use. */
  readonly reading?: ProjectReading;
  readonly warning?: { readonly message: string; readonly hint: string };
}

async function readTrustedProject(file: string, options: ProjectOptions): Promise<TrustVerdict> {
  const { home, onUntrusted, inUse } = options;
  const { table, problem } = await readTrust(home);
  const record = table.get(file);
  const refused = (who: string): TrustVerdict => ({
    warning: {
      message: `this project config was left out: ${who}`,
      hint: `If that is meant to be so: ${trustCommand(file, true)}`,
    },
  });
  const strangers = record?.shared === true ? undefined : await findForeignWriter(file);
  if (strangers !== undefined) return refused(strangers);
  const hint =
    problem === undefined
      ? `Look at it, then run: ${trustCommand(file)}`
      : `${trustFile(home)} ${problem}; repair or remove it.`;
  // Without trust and without a person to ask, it is not even read.
  if (record === undefined && onUntrusted === undefined) {
    return { warning: { message: "this project config is not trusted and was left out", hint } };
  }
  const reading = await readProject(file, options);
  if (record?.shared !== true) {
    for (const path of reading.texts.keys()) {
      const others = await findForeignWriter(path);
      if (others !== undefined) return refused(others);
    }
  }
  if (isTrusted(record, reading)) return { reading };
  const answer = (await onUntrusted?.(reading, record === undefined ? "new" : "changed")) ?? "leave";
  if (answer === "trust") await saveTrust(home, file, trustRecordOf(reading, record?.shared === true));
  if (answer !== "leave") return { reading };
  const why = reading.failure === undefined ? "" : ` (${reading.failure.message.split("\n", 1)[0]})`;
  if (record === undefined) {
    return { warning: { message: `this project config is not trusted and was left out${why}`, hint } };
  }
  if (inUse?.file === file && isTrusted(record, inUse)) {
    const message = `this project config changed since it was trusted; the version before stays in use${why}`;
    return { reading: inUse, warning: { message, hint } };
  }
  return { warning: { message: `this project config changed since it was trusted and was left out${why}`, hint } };
}

/**
 * Reads a project config with everything that belongs to it: each file once, so that what is trusted is what is used.
 * @param file The config, or a folder that has files of clients only.
 * @param given Texts that count instead of the files; null for a file that is not there.
 */
export async function readProject(
  file: string,
  options: Pick<LoadOptions, "env" | "cwd"> & { readonly home: string },
  given: ReadonlyMap<string, string | null> = new Map(),
): Promise<ProjectReading> {
  const texts = new Map<string, string | null>();
  const readText: ReadText = async (path) => {
    const known = texts.has(path) ? texts.get(path) : given.get(path);
    if (known === null) throw Object.assign(new Error("there is no such file"), { code: "ENOENT" });
    texts.set(path, null);
    const text = known ?? (await readPlainFile(path));
    texts.set(path, text);
    return text;
  };
  const isFolder = !isConfigName(file);
  let document = ConfigDocument.ofValue(file, {});
  let loaded: LoadedConfig | undefined;
  let failure: ToolcribError | undefined;
  try {
    if (!isFolder) document = parseConfigText(file, await readText(file));
    const baseDir = isFolder ? file : dirname(file);
    const found = await readConfig(document, file, { ...options, read: readText, isProject: true, baseDir });
    refuseModels(found.config.guard);
    loaded = found;
    const { plugins, guard } = loaded.config;
    const modules = guard.detectors.flatMap((entry) => (entry.type === "module" ? [entry.path] : []));
    for (const path of [...plugins, ...modules]) await readText(resolve(loaded.baseDir, path));
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? String(error.code) : "unknown reason";
    const path = [...texts.keys()].at(-1) ?? file;
    failure =
      error instanceof ToolcribError
        ? error
        : new ToolcribError("invalid_config", `${path} cannot be read (${reason})`, { cause: error });
  }
  const others = new Map([...texts].filter(([path]) => path !== file));
  // A text that does not parse is nothing but itself.
  const value = document.errors.length > 0 ? { unreadable: texts.get(file) } : document.value;
  const real = await realpath(file).catch(() => file);
  return { file, texts, value, loaded, failure, ...trustSubjectOf({ real, value, others }) };
}

/** A model, its weights and the package that runs it are large files that the digest of the trust would have to cover. */
function refuseModels({ detectors }: LoadedConfig["config"]["guard"]): void {
  const at = detectors.findIndex(({ type }) => type === "onnx");
  if (at === -1) return;
  const message = `guard.detectors[${at}]: a project config cannot bring a detector of the type onnx`;
  throw new ToolcribError("invalid_config", message, {
    hint: "Name it in the config of your home, or use this file alone with --config.",
  });
}
