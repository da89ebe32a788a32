import { Badge, type Tone } from "../../components/badge.tsx";
import { t } from "../../messages/messages.ts";
import { traffic } from "../../messages/traffic.ts";
import { RUNNING, WAITING } from "./traffic-log.ts";

export function outcomeWord(outcome: string): string {
  if (outcome === RUNNING) return t(traffic.running);
  return outcome === WAITING ? t(traffic.waiting) : outcome;
}

function toneOf(outcome: string): Tone {
  if (outcome === "ok") return "ok";
  if (outcome === RUNNING) return "info";
  if (outcome === WAITING) return "warn";
  return outcome === "cancelled" ? "neutral" : "bad";
}

export function OutcomeBadge({ outcome }: { readonly outcome: string }) {
  return <Badge tone={toneOf(outcome)}>{outcomeWord(outcome)}</Badge>;
}
