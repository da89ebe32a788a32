/** Skills that servers offer. They are accepted if every file matches its digest and the scan passes. */
import { isDeepStrictEqual } from "node:util";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { ServerInfo } from "../../model/server-state.ts";
import type { Skill, SkillFile } from "../../model/skill.ts";
import { type Machine, missingNeeds } from "../../skills/needs.ts";
import { MAIN_FILE, type OfferedSkill, serverSkillBase, serverSkillKey } from "../../skills/offer/offered-skill.ts";
import type { SkillOffer } from "../../upstream/live-lists.ts";
import type { ServerConnection } from "../../upstream/server-connection.ts";
import type { SkillSources } from "./skill-sources.ts";

interface ServerSkillsOptions {
  readonly server: string;
  readonly machine: Machine;
  /** Returns what it is given, unless there is a secret in it. */
  readonly mask: <Value>(value: Value) => Value;
  /** Skills that were accepted before. One with the same files is not scanned again. */
  readonly known: readonly OfferedSkill[];
  readonly warn: (message: string) => void;
  /** Asked in between; true stops the reading. */
  readonly isOver: () => boolean;
}

interface ServerSkillEntry {
  readonly uri: string;
  readonly name: string;
  readonly frontmatter: JsonObject;
  readonly files: readonly (SkillFile & { readonly uri: string })[];
}

/** Of one skill: the minimum that the extension demands of hosts. */
const MAX_FILES = 512;
const MAX_SKILL_BYTES = 16 * 1024 * 1024;
/** Of all skills of a server: every byte is fetched and scanned. */
const MAX_SKILLS = 200;
const MAX_TOTAL_BYTES = 64 * 1024 * 1024;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** Never rejects: rejected skills are warned about. */
async function readServerSkills(offer: SkillOffer, options: ServerSkillsOptions): Promise<OfferedSkill[]> {
  const { server, warn } = options;
  try {
    const taken: OfferedSkill[] = [];
    const listed = await offer.list();
    let bytes = 0;
    if (listed.length > MAX_SKILLS)
      warn(`${server} offers ${listed.length} skills. Only the first ${MAX_SKILLS} are read.`);
    for (const raw of listed.slice(0, MAX_SKILLS)) {
      if (options.isOver()) return [];
      try {
        const entry = parseSkillEntry(raw);
        bytes += sizeOf(entry.files);
        if (bytes > MAX_TOTAL_BYTES) throw invalidEntry(`${entry.name}: the server's skills are too large in total`);
        taken.push(await verifySkill(entry, offer, options));
      } catch (error) {
        warn(`A skill of ${server} is rejected: ${asToolcribError(error).message}`);
      }
    }
    return taken;
  } catch (error) {
    warn(`The skills of ${server} could not be listed: ${asToolcribError(error).message}`);
    return [];
  }
}

async function verifySkill(
  entry: ServerSkillEntry,
  offer: SkillOffer,
  options: ServerSkillsOptions,
): Promise<OfferedSkill> {
  const { server, machine, mask } = options;
  const [{ parseSkill }, { bytesDigest, skillDigest }, { scanSkill, worstSeverity }] = await Promise.all([
    import("../../skills/read/read-skill.ts"),
    import("../../skills/verified-files.ts"),
    import("../../skills/scan/scan-skill.ts"),
  ]);
  const read = async (path: string): Promise<Uint8Array> => {
    const file = entry.files.find((one) => one.path === path);
    if (file === undefined) throw new ToolcribError("not_found", `${entry.name} has no file ${JSON.stringify(path)}`);
    const bytes = await offer.read(file.uri, file.size);
    if (bytes.length === file.size && bytesDigest(bytes) === file.digest) return bytes;
    throw new ToolcribError("blocked", `${file.uri} does not match its digest in the server's list`);
  };
  const bytes = await read(MAIN_FILE);
  const { body, bytes: _same, ...parsed } = parseSkill(bytes, entry.name);
  if (!isDeepStrictEqual(parsed.frontmatter, entry.frontmatter)) {
    throw new ToolcribError("blocked", `the frontmatter of ${entry.uri} does not match the server's list`);
  }
  const said = { parsed, body };
  // Its digest is that of the text with the secret, so it cannot be masked and offered on.
  if (mask(said) !== said) throw new ToolcribError("blocked", `${entry.name} contains a secret of the hub`);
  const files = entry.files.map(({ uri: _uri, ...file }) => file);
  const facts = { ...parsed, files, digest: skillDigest(files) };
  const base = serverSkillBase(server, entry.name);
  const skill: Skill = { ...facts, dir: base, body, bytes };
  const before = options.known.find(({ facts: { digest } }) => digest === facts.digest);
  const findings = before?.findings ?? (await scanSkill(skill, read));
  if (worstSeverity(findings) === "refuse") {
    const reasons = findings.filter(({ severity }) => severity === "refuse").map(({ message }) => message);
    throw new ToolcribError("blocked", `${entry.name}: ${reasons.join("; ")}`);
  }
  return {
    id: `${server}:${entry.name}`,
    key: serverSkillKey(server, entry.name),
    facts,
    missing: missingNeeds(facts, machine),
    findings,
    from: `server:${server}`,
    base,
    read,
  };
}

/** An entry with a name, SKILL.md first, and nothing outside of its own folder. */
function parseSkillEntry(raw: unknown): ServerSkillEntry {
  const { uri, frontmatter, resources } = isJsonObject(raw) ? raw : {};
  if (typeof uri !== "string" || !uri.endsWith(`/${MAIN_FILE}`) || !isJsonObject(frontmatter)) {
    throw invalidEntry("an entry without the URI of a SKILL.md or without frontmatter");
  }
  const { name } = frontmatter;
  if (typeof name !== "string" || !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name) || name.length > 64) {
    throw invalidEntry(`${uri} has no name that the standard allows`);
  }
  if (resources === "dynamic") throw invalidEntry(`${name} has no digests, so it cannot be verified`);
  if (!Array.isArray(resources) || resources.length > MAX_FILES)
    throw invalidEntry(`${name} has no usable list of files`);
  const root = uri.slice(0, -MAIN_FILE.length);
  const files = resources.map((resource: unknown) => parseFile(resource, root, name));
  if (sizeOf(files) > MAX_SKILL_BYTES) throw invalidEntry(`${name} has more than ${MAX_SKILL_BYTES / 1024 / 1024} MiB`);
  if (new Set(files.map(({ path }) => path)).size < files.length) throw invalidEntry(`${name} lists a file twice`);
  const main = files.find(({ path }) => path === MAIN_FILE);
  if (main === undefined) throw invalidEntry(`${name} does not list its SKILL.md`);
  const others = files.filter((file) => file !== main).toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return { uri, name, frontmatter, files: [main, ...others] };
}

function parseFile(resource: unknown, root: string, name: string): SkillFile & { uri: string } {
  const { uri, digest, size } = isJsonObject(resource) ? resource : {};
  const path = typeof uri === "string" && uri.startsWith(root) ? decodePath(uri.slice(root.length)) : undefined;
  if (path === undefined || typeof uri !== "string") throw invalidEntry(`${name} lists a file outside of its folder`);
  if (typeof digest !== "string" || !DIGEST.test(digest)) throw invalidEntry(`${name} lists a file without a digest`);
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) {
    throw invalidEntry(`${name} lists a file without a size`);
  }
  return { uri, path, digest, size, executable: false };
}

function sizeOf(files: readonly SkillFile[]): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}

/** Undefined for a path that leads anywhere else than down. */
function decodePath(encoded: string): string | undefined {
  try {
    const segments = encoded.split("/").map(decodeURIComponent);
    const isPlain = segments.every((segment) => !["", ".", ".."].includes(segment) && !/[/\\\0]/.test(segment));
    return isPlain ? segments.join("/") : undefined;
  } catch {
    return undefined;
  }
}

function invalidEntry(message: string): ToolcribError {
  return new ToolcribError("invalid_config", message);
}

interface ServerSkillOffersOptions {
  readonly sources: () => SkillSources;
  readonly machine: () => Machine;
  readonly mask: <Value>(value: Value) => Value;
  readonly warn: (message: string, server: string) => void;
}

/** The reading of one server's skills: one at a time, and once more if something changed meanwhile. */
interface SkillReading {
  readonly connection: ServerConnection;
  readonly stopListening: () => void;
  under: Promise<void> | undefined;
  again: boolean;
  over: boolean;
}

/** Reads the skills of a server when it is ready, and drops them when it is gone. */
export class ServerSkillOffers {
  readonly #options: ServerSkillOffersOptions;
  readonly #readings = new Map<string, SkillReading>();

  constructor(options: ServerSkillOffersOptions) {
    this.#options = options;
  }

  /** Reads a server's skills again, if it offers any. */
  renew(connection: ServerConnection): void {
    const { id } = connection;
    const known = this.#readings.get(id);
    if (connection.skillOffer?.() === undefined) return this.drop(id);
    if (known?.connection === connection) return this.#read(known);
    if (known !== undefined) endReading(known);
    const reading: SkillReading = {
      connection,
      stopListening: this.#followChanges(connection),
      under: undefined,
      again: false,
      over: false,
    };
    this.#readings.set(id, reading);
    this.#read(reading);
  }

  drop(id: string): void {
    const reading = this.#readings.get(id);
    if (reading === undefined) return;
    endReading(reading);
    this.#readings.delete(id);
    this.#options.sources().offerServers(id, []);
  }

  /** For a server that changed its state: one that is on its way back keeps what it had. */
  follow({ id, state }: ServerInfo): void {
    if (state === "idle" || state === "disabled" || state === "failed" || state === "closed") this.drop(id);
  }

  async settled(): Promise<void> {
    await Promise.all([...this.#readings.values()].map(async ({ under }) => under));
  }

  /** A server reports changed skills by reporting changed resources. */
  #followChanges(connection: ServerConnection): () => void {
    let { resources } = connection.definitions();
    return connection.onChange(() => {
      const now = connection.definitions().resources;
      if (now === resources) return;
      resources = now;
      const reading = this.#readings.get(connection.id);
      if (reading?.connection === connection) this.#read(reading);
    });
  }

  #read(reading: SkillReading): void {
    reading.again = true;
    reading.under ??= this.#readWhileChanging(reading).finally(() => (reading.under = undefined));
  }

  async #readWhileChanging(reading: SkillReading): Promise<void> {
    const { machine, mask, warn, sources } = this.#options;
    const { id } = reading.connection;
    while (reading.again && !reading.over) {
      reading.again = false;
      const offer = reading.connection.skillOffer?.();
      if (offer === undefined) return;
      const skills = await readServerSkills(offer, {
        server: id,
        machine: machine(),
        mask,
        known: sources().ofServer(id),
        warn: (message) => warn(message, id),
        isOver: () => reading.over,
      });
      if (!reading.over) sources().offerServers(id, skills);
    }
  }
}

function endReading(reading: SkillReading): void {
  reading.over = true;
  reading.stopListening();
}
