/** How one list of texts becomes another: what stays, goes and comes, by the longest common subsequence. */

export interface Step {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

/** Takes room for a table of both lengths multiplied: the caller bounds them. */
export function diffSequences(before: readonly string[], after: readonly string[]): Step[] {
  const common = commonLengths(before, after);
  const steps: Step[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const [old, fresh] = [before[i], after[j]];
    if (old !== undefined && old === fresh) {
      steps.push({ kind: "same", text: old });
      i += 1;
      j += 1;
    } else if (old !== undefined && (fresh === undefined || (common[i + 1]?.[j] ?? 0) >= (common[i]?.[j + 1] ?? 0))) {
      steps.push({ kind: "removed", text: old });
      i += 1;
    } else {
      steps.push({ kind: "added", text: fresh ?? "" });
      j += 1;
    }
  }
  return steps;
}

/** At [i][j]: how many texts `before` from i and `after` from j have in common, in order. */
function commonLengths(before: readonly string[], after: readonly string[]): Uint16Array[] {
  const table = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i -= 1) {
    const [row, below] = [table[i], table[i + 1]];
    if (row === undefined || below === undefined) continue;
    for (let j = after.length - 1; j >= 0; j -= 1) {
      row[j] = before[i] === after[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
    }
  }
  return table;
}
