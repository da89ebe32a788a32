/** The cage that a server's program runs in, as the config says it. */
import { z } from "zod";

const Size = z
  .union([z.int().positive(), z.string().regex(/^[1-9]\d{0,9}(?:[kmgt]i?b?)?$/i, 'such as "512m" or "2g"')])
  .describe('Bytes, or a text such as "512m".');

/** What goes to the system as it is: a NUL would end it there, and what follows would be read as something else. */
export const SystemText = z.string().regex(/^[^\0]*$/, "a text without NUL characters");

const Paths = z.array(SystemText.min(1));

/** A timer for longer than that would ring at once. */
const LONGEST_RUN_MS = 2 ** 31 - 1;

export const CAGE_KINDS = ["none", "bubblewrap", "container"] as const;

const CageKindSchema = z.enum(CAGE_KINDS);

const CageSchema = z.strictObject({
  kind: CageKindSchema.optional().describe("`container` if `image` is given, else `bubblewrap`, if absent."),
  read: Paths.optional().describe("Paths that the program may read besides the system; relative to the config file."),
  write: Paths.optional().describe("Paths that it may change; relative to the config file."),
  network: z.enum(["none", "host"]).default("none").describe("`host`: the network as this machine has it."),
  memory: Size.optional().describe("The most memory that it may have."),
  cpus: z.number().positive().optional().describe("How many processors it may keep busy."),
  pids: z.int().positive().optional().describe("How many processes and threads it may have."),
  timeout: z
    .int()
    .positive()
    .max(LONGEST_RUN_MS)
    .optional()
    .describe("Milliseconds that one run of it may last; then it is ended."),
  image: SystemText.min(1).optional().describe("Image of a container; made on the spot for an npm package if absent."),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe("Of a container that serves MCP over HTTP: the port in it, which is published on loopback only."),
  path: z
    .string()
    .regex(/^\//, "a path that begins with /")
    .optional()
    .describe("Path of the MCP endpoint at `port`; `/mcp` if absent."),
});

export const SandboxSchema = z.union([CageKindSchema, CageSchema]);

export type CageKind = z.output<typeof CageKindSchema>;
export type SandboxEntry = z.output<typeof SandboxSchema>;
/** An entry that says more than its kind. */
export type CageEntry = z.output<typeof CageSchema>;

/** The kind that an entry means, whether it is a word or an object. */
export function cageKindOf(entry: SandboxEntry): CageKind {
  if (typeof entry === "string") return entry;
  return entry.kind ?? (entry.image === undefined ? "bubblewrap" : "container");
}

/** The image that an entry names, where it means a container. */
export function cageImageOf(entry: SandboxEntry | undefined): string | undefined {
  if (entry === undefined || typeof entry === "string" || cageKindOf(entry) !== "container") return undefined;
  return entry.image;
}

/** How containers are run. */
export const ContainersSchema = z.strictObject({
  program: z.string().min(1).optional().describe("`podman`, `docker` or a path; whichever is found first if absent."),
  flags: z.array(z.string()).optional().describe("More flags for every `run`, such as `--runtime`."),
  base: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Image with Node that images for npm packages are made from; `docker.io/library/node:24-slim` if absent.",
    ),
});

export type ContainersConfig = z.output<typeof ContainersSchema>;
