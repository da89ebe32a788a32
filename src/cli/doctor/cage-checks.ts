/** Which cages this machine offers, and whether every server can have its own. */
import { cageKindOf } from "../../model/sandbox.ts";
import type { ServerSpec } from "../../model/server-spec.ts";
import type { AvailableCage } from "../../upstream/cages/available.ts";
import type { Check } from "./machine-checks.ts";

/** bubblewrap is tried for a moment; a container needs an image, and there may be none. */
const UNTRIED = " answers; whether it can run a container shows when a server starts in one";

/** One line for each kind. To lack one is a problem only for servers that need it. */
export function cageChecks(cages: readonly AvailableCage[], servers: readonly ServerSpec[]): Check[] {
  return cages
    .filter(({ kind }) => kind !== "none")
    .map((cage): Check => {
      const { kind, available, version, reason, hint } = cage;
      const needing = servers
        .filter(({ enabled, sandbox }) => enabled && sandbox !== undefined && cageKindOf(sandbox) === kind)
        .map(({ id }) => id);
      const whose = needing.length === 0 ? "" : `; the cage of ${needing.join(", ")}`;
      const details = { ...cage, servers: needing };
      if (available) {
        const found = `${version ?? "available"}${kind === "container" ? UNTRIED : ""}`;
        return { area: "cages", status: "ok", message: `${kind}: ${found}${whose}`, details };
      }
      return {
        area: "cages",
        status: needing.length === 0 ? "ok" : "fail",
        message: `${kind}: not on this machine (${reason ?? "for no known reason"})${whose}`,
        hint,
        details,
      };
    });
}
