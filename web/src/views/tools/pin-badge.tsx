import type { ToolInfo } from "../../../../src/contract/catalog-schemas.ts";
import { Badge, type Tone } from "../../components/badge.tsx";
import { type Message, t } from "../../messages/messages.ts";
import { toolWords } from "../../messages/tool-words.ts";

interface PinWords {
  readonly label: Message;
  readonly meaning: Message;
  readonly tone: Tone;
}

export const PIN_WORDS: Readonly<Record<ToolInfo["pin"], PinWords>> = {
  same: { label: toolWords.pinned, meaning: toolWords.pinnedMeaning, tone: "ok" },
  changed: { label: toolWords.changed, meaning: toolWords.changedMeaning, tone: "warn" },
  new: { label: toolWords.isNew, meaning: toolWords.newMeaning, tone: "info" },
  gone: { label: toolWords.gone, meaning: toolWords.goneMeaning, tone: "neutral" },
  unknown: { label: toolWords.notPinned, meaning: toolWords.notPinnedMeaning, tone: "neutral" },
  off: { label: toolWords.pinsOff, meaning: toolWords.pinsOffMeaning, tone: "neutral" },
};

export function PinBadge({ pin }: { readonly pin: ToolInfo["pin"] }) {
  const { label, meaning, tone } = PIN_WORDS[pin];
  return (
    <Badge tone={tone} title={t(meaning)}>
      {t(label)}
    </Badge>
  );
}
