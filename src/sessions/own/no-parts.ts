import { ToolcribError } from "../../model/errors.ts";
import type { OwnParts } from "./own-parts.ts";

const noHub = (): ToolcribError =>
  new ToolcribError("cancelled", "The session is closed, or no hub has opened it; it can bring nothing.");

/** Of a session that is closed, or that no hub opened. */
export const NO_PARTS: OwnParts = {
  mount: () => Promise.reject(noHub()),
  setTools() {
    throw noHub();
  },
  servers: () => [],
  leftOut: () => [],
  notices: () => [],
  settled: () => Promise.resolve(),
  on: () => () => {},
};
