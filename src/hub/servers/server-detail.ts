/** One server with everything that an operator wants to know of it. */
import type { LoadedConfig } from "../../config/load-config.ts";
import { entryOfSpec } from "../../config/spec-entry.ts";
import type { ServerDetail } from "../../contract/server.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { StoredServer } from "../../store/store.ts";
import type { ServerConnection } from "../../upstream/server-connection.ts";
import { STORE_DIALECT } from "./added-servers.ts";
import { etagOf } from "./etag.ts";
import { maskedEntry } from "./masked-entry.ts";
import type { ServerEvent } from "./server-history.ts";

export interface DetailFacts {
  readonly connection: ServerConnection;
  /** As the config has it now. */
  readonly spec: ServerSpec;
  /** Only of a server that the store holds and no file names. */
  readonly stored: StoredServer | undefined;
  readonly config: LoadedConfig;
  readonly stderr: readonly string[];
  readonly history: readonly ServerEvent[];
  readonly redactor: Redactor;
}

export function serverDetail(facts: DetailFacts): ServerDetail {
  const { connection, spec, stored, config, stderr, history, redactor } = facts;
  const { resources, templates, prompts } = connection.definitions();
  const shown = maskedEntry(stored?.entry ?? entryOfSpec(spec), redactor);
  const detail = {
    ...connection.info(),
    from: originKind(spec, config),
    editable: stored !== undefined,
    enabled: spec.enabled,
    autoConnect: spec.autoConnect,
    config: shown,
    stderr: [...stderr],
    history: [...history],
    resourceCount: resources.length + templates.length,
    promptCount: prompts.length,
  };
  const { tags, warnings, origin, ...rest } = redactor.maskAll(detail);
  // Of a stored entry the whole counts, of another one what is shown: nobody can change that here.
  const etag = stored === undefined ? etagOf(shown) : etagOf(stored.entry, stored.revision);
  return { ...rest, tags: [...tags], warnings: [...warnings], origin: { ...origin }, etag };
}

function originKind({ origin }: ServerSpec, { file, inCode }: LoadedConfig): ServerDetail["from"] {
  if (origin.dialect === STORE_DIALECT) return "store";
  if (origin.dialect === "skill") return "skill";
  if (inCode && origin.file === "library") return "code";
  return origin.file === file ? "file" : "import";
}
