/** When a hub in the background ends: it was not used for a while, or a newer version of Toolcrib is there. */
import { readFileSync } from "node:fs";
import type { Hub } from "../../hub/hub.ts";
import { VERSION } from "../../model/version.ts";

interface BackgroundOptions {
  readonly hub: Pick<Hub, "config" | "internals">;
  /** Calls in progress. */
  readonly busy: () => number;
  readonly end: (reason: string) => void;
  /** The `package.json` of this program. */
  readonly packageFile: string;
}

const MAX_LOOK_MS = 5000;

export class BackgroundHub {
  readonly #options: BackgroundOptions;
  readonly #timer: NodeJS.Timeout;
  #usedAt = performance.now();
  /** A newer version that a client has, or that was installed in this one's place. */
  #newer: string | undefined;

  constructor(options: BackgroundOptions) {
    this.#options = options;
    const idleMs = options.hub.config.config.hub.idleMinutes * 60_000;
    this.#timer = setInterval(() => this.#look(), Math.min(MAX_LOOK_MS, idleMs / 4 || MAX_LOOK_MS));
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** A client introduced itself. */
  clientCame(version: string): void {
    this.#usedAt = performance.now();
    if (isNewer(version, VERSION)) this.#newer = version;
  }

  #look(): void {
    const { hub, busy, end, packageFile } = this.#options;
    const isBusy = busy() > 0;
    // The hub's own session is always open.
    if (isBusy || hub.internals.sessions().length > 1) this.#usedAt = performance.now();
    const installed = installedVersion(packageFile);
    const newer = this.#newer ?? (installed !== VERSION ? installed : undefined);
    const { idleMinutes } = hub.config.config.hub;
    if (newer !== undefined && !isBusy) end(`version ${newer} takes over from ${VERSION}`);
    else if (idleMinutes > 0 && performance.now() - this.#usedAt > idleMinutes * 60_000) {
      end(`not used for ${idleMinutes} minutes`);
    }
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

function isNewer(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split(/[.-]/, 3).map(Number)) as [number[], number[]];
  const at = a.findIndex((part, index) => part !== b[index]);
  return at !== -1 && (a[at] ?? 0) > (b[at] ?? 0);
}
