import { ToolcribError } from "../../model/errors.ts";
import { bubblewrapCage } from "./bubblewrap.ts";
import type { Cage, CageDeps, CageSettings } from "./cage.ts";
import { containerCage } from "./container/container-cage.ts";

/** Throws for `none`: what runs without a cage needs no launch of its own. */
export function openCage(settings: CageSettings, deps: CageDeps): Cage {
  switch (settings.kind) {
    case "bubblewrap":
      return bubblewrapCage(settings, deps);
    case "container":
      return containerCage(settings, deps);
    case "none":
      throw new ToolcribError("internal", "There is no cage to open.");
  }
}
