/** A bar on the terminal's last line; nothing where there is no terminal. */
import type { Output } from "../output.ts";

const WIDTH = 24;

/** Gives the function to call with each step. Redraws only when something visible changes. */
export function progressBar(out: Output, what: string): (done: number, of: number) => void {
  let shown = "";
  return (done, of) => {
    const part = of === 0 ? 1 : done / of;
    const full = Math.round(part * WIDTH);
    const bar = `${"#".repeat(full)}${"-".repeat(WIDTH - full)}`;
    const state = `${what} [${bar}] ${Math.floor(part * 100)}%`;
    if (done >= of) out.transient("");
    else if (state !== shown) out.transient(`${state} ${done}/${of}`);
    shown = state;
  };
}
