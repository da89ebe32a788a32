/** Does something soon after it was asked for: many wishes in a moment lead to one run, and runs never overlap. */
export interface Gathered {
  readonly ask: () => void;
  readonly stop: () => void;
}

export function gathered(work: () => Promise<void>, delay: number): Gathered {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isRunning = false;
  let isAsked = false;
  let isOver = false;
  const ask = (): void => {
    if (isOver) return;
    if (isRunning) isAsked = true;
    else timer ??= setTimeout(() => void start(), delay);
  };
  const start = async (): Promise<void> => {
    timer = undefined;
    isRunning = true;
    // Whoever does the work tells of its errors.
    await work().catch(() => undefined);
    isRunning = false;
    if (!isAsked) return;
    isAsked = false;
    ask();
  };
  return {
    ask,
    stop: () => {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
