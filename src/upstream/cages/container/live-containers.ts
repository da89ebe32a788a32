/**
 * The containers that this process has running. Killing `podman run` leaves its container behind, so each is removed by
 * name: when its server ends, on the way out of the process, and, for a process that was killed outright, by the next
 * hub, which finds a note in `$TOOLCRIB_HOME/run/containers`.
 */
import { spawnSync } from "node:child_process";
import type { ContainerEngine } from "./engine.ts";
import { removeNote, writeNote } from "./hub-notes.ts";
import { type HubMark, hubMark } from "./labels.ts";

interface LiveContainer {
  readonly engine: ContainerEngine;
  readonly name: string;
  readonly home: string;
  /** Told if no note can be kept. */
  warn(message: string): void;
}

const REMOVE_MS = 20_000;
/** At the exit of a process nobody likes to wait; what is left then is found by the note. */
const LAST_REMOVE_MS = 5000;

// One set for the process, because `exit` is an event of the process.
const live = new Set<LiveContainer>();
let mark: HubMark | undefined;

export function thisHub(): HubMark {
  mark ??= hubMark();
  return mark;
}

/**
 * To be called before the container is started. The returned function removes it, running or not, and never rejects.
 * It may be called again.
 */
export function holdContainer(container: LiveContainer): () => Promise<void> {
  const { engine, name, home, warn } = container;
  try {
    const used = [...live, container].filter((each) => each.home === home).map((each) => each.engine.program);
    writeNote(home, { ...thisHub(), programs: [...new Set(used)] });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    warn(`No note of containers can be kept, so they would outlive a hub that is killed: ${reason}`);
  }
  if (live.size === 0) process.on("exit", removeAtExit);
  live.add(container);
  let removing: Promise<void> | undefined;
  return () => {
    removing ??= removeContainers(engine, [name]).then((gone) => {
      removing = undefined;
      // What could not be removed stays noted: the next start tries again.
      if (gone) release(container);
    });
    return removing;
  };
}

function release(container: LiveContainer): void {
  if (!live.delete(container)) return;
  if (live.size === 0) process.off("exit", removeAtExit);
  const others = [...live].some(({ home }) => home === container.home);
  if (!others) removeNote(container.home, thisHub());
}

/** Asks it to end, and ends it after a moment. Never rejects. */
export async function stopContainer(engine: ContainerEngine, name: string): Promise<void> {
  // Many programs do not hear SIGTERM as the first process of a container.
  await engine.run(["stop", "-t", "1", name], { timeoutMs: REMOVE_MS }).catch(() => undefined);
}

/** Whether they are gone. Those that are gone already are no failure. Never rejects. */
export async function removeContainers(engine: ContainerEngine, names: readonly string[]): Promise<boolean> {
  try {
    const { code, stderr } = await engine.run(removal(engine, names), { timeoutMs: REMOVE_MS });
    return code === 0 || /no such container/i.test(stderr);
  } catch {
    return false;
  }
}

/** docker kills at once and knows no `-t`. */
function removal({ kind }: ContainerEngine, names: readonly string[]): string[] {
  return kind === "podman" ? ["rm", "-f", "--ignore", "-t", "0", ...names] : ["rm", "-f", ...names];
}

function removeAtExit(): void {
  const byProgram = Map.groupBy(live, ({ engine }) => engine.program);
  for (const [program, containers] of byProgram) {
    const [first] = containers;
    if (first === undefined) continue;
    const args = removal(
      first.engine,
      containers.map(({ name }) => name),
    );
    spawnSync(program, args, { env: first.engine.env, stdio: "ignore", timeout: LAST_REMOVE_MS });
  }
}
