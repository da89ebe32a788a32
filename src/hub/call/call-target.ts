import type { Capability } from "../../model/capability.ts";
import { ToolcribError } from "../../model/errors.ts";
import { NO_DEFINITIONS, type Source, type Use } from "../../model/source.ts";
import type { Session } from "../../sessions/session.ts";

/** What a public name stands for: the capability, who has it, and the use in that source's own words. */
export interface Target {
  readonly capability: Capability;
  readonly source: Source;
  readonly use: Use;
}

/** A session's kept results as a Source, so that reading one takes the same path as every other read. */

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
