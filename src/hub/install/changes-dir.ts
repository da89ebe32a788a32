import { join } from "node:path";

/** Where change sets keep their journals, so that the next run finds what a killed one left. */
export function changesDir(home: string): string {
  return join(home, "changes");
}
