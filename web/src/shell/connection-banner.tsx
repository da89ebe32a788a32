import { useEffect, useState } from "react";
import { Icon } from "../components/icon.tsx";
import { t } from "../messages/messages.ts";
import { shell } from "../messages/shell.ts";
import { useConnectionStatus } from "../state/live.ts";

/** Says that what is shown may be old. The region is always there, so that screen readers notice its text. */
export function ConnectionBanner() {
  const status = useConnectionStatus();
  const [recovered, setRecovered] = useState(false);
  const [wasLost, setWasLost] = useState(false);
  useEffect(() => {
    if (status === "lost") setWasLost(true);
    if (status !== "open" || !wasLost) return undefined;
    setWasLost(false);
    setRecovered(true);
    const timer = setTimeout(() => setRecovered(false), 3000);
    return () => clearTimeout(timer);
  }, [status, wasLost]);
  const lost = status === "lost" || (wasLost && status === "connecting");
  return (
    <div role="status" aria-live="polite">
      {lost && (
        <p className="flex items-center justify-center gap-2 border-b border-warn bg-warn-wash px-4 py-1.5 text-warn">
          <Icon name="warning" />
          {t(shell.connectionLost)}
        </p>
      )}
      {!lost && recovered && (
        <p className="flex items-center justify-center gap-2 border-b border-ok bg-ok-wash px-4 py-1.5 text-ok">
          <Icon name="check" />
          {t(shell.connectedAgain)}
        </p>
      )}
    </div>
  );
}
