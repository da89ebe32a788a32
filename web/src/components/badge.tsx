import type { ReactNode } from "react";

const TONES = {
  neutral: "bg-sunken text-soft border-line",
  accent: "bg-accent-wash text-accent border-transparent",
  ok: "bg-ok-wash text-ok border-transparent",
  warn: "bg-warn-wash text-warn border-transparent",
  bad: "bg-bad-wash text-bad border-transparent",
  info: "bg-info-wash text-info border-transparent",
} as const;

export type Tone = keyof typeof TONES;

export function Badge({
  tone = "neutral",
  title,
  children,
}: {
  readonly tone?: Tone;
  readonly title?: string;
  readonly children: ReactNode;
}) {
  return (
    <span
      title={title}
      className={`inline-flex max-w-full items-center gap-1 rounded-sm border px-1.5 text-xs leading-normal font-medium whitespace-nowrap ${TONES[tone]}`}
    >
      {children}
    </span>
  );
}
