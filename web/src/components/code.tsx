import { useState } from "react";
import { components } from "../messages/components.ts";
import { t } from "../messages/messages.ts";
import { Button } from "./button.tsx";
import { toastError } from "./toast.tsx";

export function CopyButton({ text, label = t(components.copy) }: { readonly text: string; readonly label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      // Only a page over https or on loopback may write to the clipboard.
      toastError({ code: "denied", message: t(components.copyRefused), hint: t(components.copyByHand) });
    }
  };
  return (
    <Button size="sm" variant="ghost" icon={done ? "check" : "copy"} onClick={() => void copy()}>
      {done ? t(components.copied) : label}
    </Button>
  );
}

interface CodeProps {
  readonly text: string;
  /** Its name, for screen readers. */
  readonly label: string;
  readonly copy?: boolean;
  /** Long lines are broken instead of scrolled. */
  readonly wrap?: boolean;
  readonly className?: string;
}

/** Text of fixed width in a box. */
export function Code({ text, label, copy = false, wrap = false, className = "max-h-96" }: CodeProps) {
  return (
    <div className="relative min-w-0">
      <pre
        // It scrolls, so it can be reached by keyboard.
        tabIndex={0}
        role="group"
        aria-label={label}
        className={`overflow-auto rounded-md border border-line bg-sunken p-3 font-mono text-sm -outline-offset-2 ${wrap ? "break-words whitespace-pre-wrap" : ""} ${copy ? "pr-20" : ""} ${className}`}
      >
        {text}
      </pre>
      {copy && (
        <div className="absolute top-1.5 right-1.5">
          <CopyButton text={text} />
        </div>
      )}
    </div>
  );
}
