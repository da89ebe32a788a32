/** Logs of this process that are not closed. They are when it exits: otherwise `process.exit` would look like a crash. */
interface Closable {
  close(): void;
}

const live = new Set<Closable>();

function closeAll(): void {
  for (const log of live) log.close();
}

/** One listener for all of them: several hubs in one process must not add up to a listener warning. */
export function closeOnExit(log: Closable): () => void {
  if (live.size === 0) process.on("exit", closeAll);
  live.add(log);
  return () => {
    live.delete(log);
    if (live.size === 0) process.off("exit", closeAll);
  };
}
