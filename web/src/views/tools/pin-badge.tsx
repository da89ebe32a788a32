import type { ToolInfo } from "../../../../src/contract/catalog-schemas.ts";
import { Badge, type Tone } from "../../components/badge.tsx";

interface PinWords {
  readonly label: string;
  readonly meaning: string;
  readonly tone: Tone;
}

export const PIN_WORDS: Readonly<Record<ToolInfo["pin"], PinWords>> = {
  same: { label: "pinned", meaning: "It is unchanged since it was pinned.", tone: "ok" },
  changed: { label: "changed", meaning: "Its definition differs from the pinned one.", tone: "warn" },
  new: { label: "new", meaning: "It is new since its server was pinned, and not approved yet.", tone: "info" },
  gone: { label: "gone", meaning: "Its server no longer offers it.", tone: "neutral" },
  unknown: { label: "not pinned", meaning: "Nothing is pinned for it yet.", tone: "neutral" },
  off: { label: "pins off", meaning: "Pins are turned off in the config.", tone: "neutral" },
};

export function PinBadge({ pin }: { readonly pin: ToolInfo["pin"] }) {
  const { label, meaning, tone } = PIN_WORDS[pin];
  return (
    <Badge tone={tone} title={meaning}>
      {label}
    </Badge>
  );
}
