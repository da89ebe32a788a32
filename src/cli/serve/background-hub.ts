/** When a hub in the background ends: it was not used for a while, or a newer version of Toolcrib is there. */
import { readFileSync } from "node:fs";
import type { Hub } from "../../hub/hub.ts";
import { isNewer, VERSION } from "../../model/version.ts";

interface BackgroundOptions {
  readonly hub: Pick<Hub, "config" | "internals">;
  /** Calls in progress. */
  readonly busy: () => number;
  /** With the program that is to take its place, if one is. */
  readonly end: (reason: string, successor?: string) => void;
  /** The `package.json` of this program. */
  readonly packageFile: string;
  /** This program. */
  readonly entry: string;
}

const MAX_LOOK_MS = 5000;

interface Successor {
  readonly version: string;
  readonly entry: string;
}

export class BackgroundHub {
  readonly #options: BackgroundOptions;
  readonly #timer: NodeJS.Timeout;
  #usedAt = performance.now();
  /** A newer version that a client has. */
  #newer: Successor | undefined;
  /** The version of the package at the last look: while it is being replaced, it may not be whole. */
  #installed: string | undefined = VERSION;

  constructor(options: BackgroundOptions) {
    this.#options = options;
    const idleMs = options.hub.config.config.hub.idleMinutes * 60_000;
    this.#timer = setInterval(() => this.#look(), Math.min(MAX_LOOK_MS, idleMs / 4 || MAX_LOOK_MS));
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** A client introduced itself. */
  clientCame({ version, entry }: { readonly version: string; readonly entry?: string | undefined }): void {
    this.#usedAt = performance.now();
    if (entry !== undefined && isNewer(version, this.#newer?.version ?? VERSION)) this.#newer = { version, entry };
  }

  #look(): void {
    const { hub, busy, end } = this.#options;
    const isBusy = busy() > 0;
    // The hub's own session is always open.
    const isUsed = isBusy || hub.internals.sessions().length > 1;
    if (isUsed) this.#usedAt = performance.now();
    const newer = this.#upgrade() ?? this.#newer;
    const { idleMinutes } = hub.config.config.hub;
    if (newer !== undefined && !isBusy) end(`version ${newer.version} takes over from ${VERSION}`, newer.entry);
    else if (idleMinutes > 0 && performance.now() - this.#usedAt > idleMinutes * 60_000) {
      end(`not used for ${idleMinutes} minutes`);
    }
  }

  /** Another version that was installed in this one's place. */
  #upgrade(): Successor | undefined {
    const { packageFile, entry } = this.#options;
    const before = this.#installed;
    const version = (this.#installed = installedVersion(packageFile));
    return version === undefined || version === VERSION || version !== before ? undefined : { version, entry };
  }
}

/** Undefined while the package is being replaced. */
function installedVersion(packageFile: string): string | undefined {
  try {
    const { version } = JSON.parse(readFileSync(packageFile, "utf8")) as { version?: unknown };
    return typeof version === "string" ? version : undefined;
  } catch {
    return undefined;
  }
}
