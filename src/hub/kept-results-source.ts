/** A session's kept results as a Source, so that reading one takes the same path as every other read. */
import { ToolcribError } from "../model/errors.ts";
import { NO_DEFINITIONS, type Source } from "../model/source.ts";
import type { Session } from "../sessions/session.ts";
import type { Target } from "./target.ts";

/** No id that a server can have. */
export const RESULTS_SOURCE = "toolcrib:results";

export function keptResultsTarget(session: Session, uri: string): Target {
  const source: Source = {
    id: RESULTS_SOURCE,
    kind: "local",
    definitions: () => NO_DEFINITIONS,
    onChange: () => () => {},
    async run() {
      const result = session.results.read(uri);
      if (result !== undefined) return result;
      throw new ToolcribError("not_found", `The result "${uri}" is not kept, or no longer.`, {
        hint: "Kept results belong to one session and make room for newer ones. Call the tool again.",
      });
    },
  };
  return {
    source,
    use: { kind: "resource", uri },
    capability: {
      kind: "resource",
      name: uri,
      origin: { source: RESULTS_SOURCE, name: uri },
      definition: { uri, name: uri, mimeType: "text/plain" },
      fingerprint: "",
    },
  };
}
