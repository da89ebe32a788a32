/** @returns Stops listening to the signal. */
export function closeOnAbort(hub: { close(): Promise<void> }, signal: AbortSignal | undefined): () => void {
  if (signal === undefined) return () => {};
  const close = (): void => void hub.close();
  if (signal.aborted) close();
  else signal.addEventListener("abort", close, { once: true });
  return () => signal.removeEventListener("abort", close);
}
