/**
 * `/bridge`: stdio clients of other processes. `toolcrib mcp` is a thin program that carries their lines here, so that all of them
 * share one hub.
 */
import type { Duplex } from "node:stream";
import { z } from "zod";
import { type Caller, type Scope, SCOPES } from "../../model/caller.ts";
import { BRIDGE_PATH, BRIDGE_PROTOCOL, HELLO_HEADER, WARNING_HEADER } from "../../model/bridge.ts";
import { asToolcribError, ToolcribError } from "../../model/errors.ts";
import { joinEditorSession, noEditorSession } from "../http/api/caller-sessions.ts";
import { refuseUpgrade } from "../http/http-connections.ts";
import type { HttpRoute, HttpUpgrade } from "../http/http-exchange.ts";
import { sendError } from "../http/http-responses.ts";
import type { McpDoor } from "./mcp-door.ts";
import { StdioDoor } from "./stdio-door.ts";

interface BridgeDoorOptions {
  readonly door: McpDoor;
  /** Whether `http.auth` is set: the owner's rights are then for the owner's own commands. */
  readonly needsAuth: () => boolean;
  readonly hasServer: (id: string) => boolean;
  /** `hub.clientEnv`. */
  readonly clientEnv?: () => readonly string[];
  /** A client introduced itself. */
  readonly onHello?: (hello: BridgeHello) => void;
}

const Text = z.string().max(4096);
const HelloSchema = z.object({
  /** Of Toolcrib on the client's side. */
  version: z.string().max(64),
  role: Text.optional(),
  view: Text.optional(),
  /** The id of the client that `connect` wrote its command for. */
  client: Text.optional(),
  /** Serves only this server. */
  server: Text.optional(),
  /** The session of an editor that the client joins. */
  session: Text.optional(),
  /** Of the bridge. */
  pid: z.int().optional(),
  /** The program that started it, where the system says. */
  program: Text.optional(),
  cwd: Text.optional(),
  /** The same for as long as the bridge runs: what its client has read is known to the next hub as well. */
  conversation: z.string().max(100).optional(),
  /** The program file of the bridge: of a newer version it takes the hub's place. */
  entry: Text.optional(),
  /** Variables that `hub.clientEnv` names. */
  env: z.record(z.string(), z.string()).optional(),
});
export type BridgeHello = Readonly<z.output<typeof HelloSchema>>;

/** How often it is checked that the client's token is still valid. */
const CREDENTIALS_MS = 15_000;
const OWNER_SCOPES: ReadonlySet<Scope> = new Set(SCOPES);
const CLIENT_SCOPES: ReadonlySet<Scope> = new Set(["read", "call"]);
/** The caller of the token in the hub's own file. */
export const OWN_KEY = "hub";

export class BridgeDoor {
  readonly #options: BridgeDoorOptions;
  readonly #open = new Set<Duplex>();

  constructor(options: BridgeDoorOptions) {
    this.#options = options;
  }

  readonly route: HttpRoute = {
    path: BRIDGE_PATH,
    access: "admin",
    protocol: BRIDGE_PROTOCOL,
    handle({ response }) {
      const error = new ToolcribError("invalid_arguments", "This address is for toolcrib mcp.");
      sendError(response, error, { status: 426, headers: { upgrade: BRIDGE_PROTOCOL } });
    },
    upgrade: (upgrade) => void this.#take(upgrade),
  };

  /** Clients that are connected now. */
  get size(): number {
    return this.#open.size;
  }

  close(): void {
    for (const socket of this.#open) socket.destroy();
  }

  async #take(upgrade: HttpUpgrade): Promise<void> {
    const { socket } = upgrade;
    const { needsAuth } = this.#options;
    let stdio: StdioDoor;
    let caller: Caller;
    let warning: string | undefined;
    try {
      // Requests on this connection pass no rate limit and no quota: it is for this user's own programs.
      if (upgrade.caller.key !== OWN_KEY) {
        throw new ToolcribError("denied", "Only the token in the hub's own file opens a bridge.", {
          hint: "Use /mcp.",
        });
      }
      const hello = readHello(upgrade);
      const { door, hasServer, onHello } = this.#options;
      const { server, session, role, view, pid, program, cwd, client } = hello;
      const conversation = hello.conversation && `bridge ${hello.conversation}`;
      if (server !== undefined && !hasServer(server)) {
        throw new ToolcribError("not_found", `There is no server "${server}".`);
      }
      onHello?.(hello);
      const scope = { role, view, servers: server === undefined ? undefined : [server], session };
      const peer = { transport: "stdio", pid, program, cwd, entryOf: client };
      caller = ownUserCaller("stdio", needsAuth());
      warning = door.hub.internals.unknownScope({ role, view, owner: caller.owner });
      if (session !== undefined) {
        const joined = joinEditorSession(door.hub.internals, caller, session)?.within;
        if (joined === undefined) throw noEditorSession(session);
        const end = (): void => void socket.destroy();
        joined.closing.addEventListener("abort", end, { once: true });
        socket.once("close", () => joined.closing.removeEventListener("abort", end));
      }
      const clientEnv = allowedEnv(hello.env, this.#options.clientEnv?.() ?? []);
      stdio = new StdioDoor(door, { caller, scope, peer, clientEnv, conversation }, { input: socket, output: socket });
    } catch (error) {
      refuseUpgrade(upgrade, asToolcribError(error));
      return;
    }
    this.#open.add(socket);
    switchProtocol(upgrade, BRIDGE_PROTOCOL, warning);
    const check = setInterval(() => {
      // A client that came before http.auth was set connects again, without the owner's rights.
      if (!upgrade.stillAdmitted() || (caller.owner && needsAuth())) socket.destroy();
    }, CREDENTIALS_MS).unref();
    try {
      await stdio.run();
    } finally {
      clearInterval(check);
      stdio.close();
      // The next connection of this client is another caller.
      this.#options.door.left(caller);
      this.#open.delete(socket);
      socket.end();
    }
  }
}

let opened = 0;

/**
 * A program of the hub's own user, known by the token in the hub's file. With `http.auth` it is not the owner: every program of
 * that user can read the file. Each is a caller of its own: what one began, another must not continue.
 */
export function ownUserCaller(kind: string, needsAuth: boolean): Caller {
  const key = `${kind}-${++opened}`;
  return needsAuth ? { key, owner: false, scopes: CLIENT_SCOPES } : { key, owner: true, scopes: OWNER_SCOPES };
}

function allowedEnv(env: BridgeHello["env"], names: readonly string[]): BridgeHello["env"] {
  const allowed = Object.entries(env ?? {}).filter(([name]) => names.includes(name));
  return allowed.length === 0 ? undefined : Object.fromEntries(allowed);
}

/** From here on the connection is not HTTP, and may be silent. */
export function switchProtocol({ socket, head }: HttpUpgrade, protocol: string, warning?: string): void {
  if ("setTimeout" in socket && typeof socket.setTimeout === "function") socket.setTimeout(0);
  if ("setNoDelay" in socket && typeof socket.setNoDelay === "function") socket.setNoDelay(true);
  const encoded = Buffer.from(warning ?? "").toString("base64url");
  const more = warning === undefined ? "" : `${WARNING_HEADER}: ${encoded}\r\n`;
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${more}\r\n`);
  if (head.length > 0) socket.unshift(head);
}

function readHello({ request }: HttpUpgrade): BridgeHello {
  const header = request.headers[HELLO_HEADER];
  try {
    return HelloSchema.parse(JSON.parse(Buffer.from(String(header), "base64url").toString("utf8")));
  } catch {
    throw new ToolcribError("invalid_arguments", `The header ${HELLO_HEADER} is missing or is not valid.`);
  }
}
