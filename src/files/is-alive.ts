/** Whether a process with this id exists, also one that belongs to somebody else. */
export function isAlive(pid: number): boolean {
  // These would ask for groups of processes, our own among them.
  if (pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
