import { defused } from "./control-tokens.ts";
import { withoutMarkers } from "./marker.ts";

/**
 * Text from outside that cannot speak with another voice: forged boundary markers and the id of the real one are
 * replaced, control tokens of models are defused. Other text is untouched, and doing it twice changes nothing more.
 */
export function neutralise(text: string, id?: string): string {
  const unmarked = withoutMarkers(defused(text));
  return id === undefined || id === "" ? unmarked : unmarked.replaceAll(id, "[forged id]");
}
