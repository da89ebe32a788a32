/** Lets an operator in, and shows the login to everyone else. */
import { lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import type { Me } from "../../../src/contract/settings-schemas.ts";
import { login } from "../api.ts";
import { FailureBox, Skeleton } from "../components/states.tsx";
import { failureOf } from "../failure.ts";
import { t } from "../messages/messages.ts";
import { shell } from "../messages/shell.ts";
import { keptPageKey, onPageKey } from "../page-key.ts";
import { startLive, useConnectionStatus } from "../state/live.ts";
import { queryClient, useOperation } from "../state/queries.ts";
import { Login } from "./login.tsx";
import { forgetPlace, returnToPlace } from "./return-place.ts";

/** A link that is opened over a page that is there already changes only what is behind the `#`. */
export function reloadForLogin(): void {
  window.addEventListener("hashchange", () => {
    if (location.hash.startsWith("#login=")) location.reload();
  });
}

/** The code is taken out of the address at once, so that it stays in no history. */
export function takeLoginCode(): string | undefined {
  const match = /^#login=(.+)$/.exec(location.hash);
  if (match?.[1] === undefined) return undefined;
  history.replaceState(null, "", location.pathname + location.search);
  return decodeURIComponent(match[1]);
}

const ASK_AGAIN_MS = 3000;

const OwnLogins = lazy(async () => ({ default: (await import("../views/logins/logins.tsx")).OwnLogins }));

interface GateProps {
  readonly code: string | undefined;
  readonly children: (me: Me) => ReactNode;
}

export function Gate({ code, children }: GateProps) {
  const [trading, setTrading] = useState(code !== undefined);
  const [loginError, setLoginError] = useState<unknown>();
  // A login may have ended meanwhile. The refusal of the WebSocket does not say so; the response to this request does.
  const isLost = useConnectionStatus() === "lost";
  const me = useOperation("me", {}, { enabled: !trading, ...(isLost ? { refetchInterval: ASK_AGAIN_MS } : {}) });
  useEffect(() => {
    if (code === undefined) return;
    login({ code })
      .then(returnToPlace)
      .catch(setLoginError)
      .finally(() => setTrading(false));
  }, [code]);
  const operator = me.data?.scopes.includes("admin") === true;
  const refused = me.error !== null && failureOf(me.error).code === "unauthorized";
  const isIn = operator && !refused;
  useEffect(() => {
    if (!isIn) return;
    startLive();
    forgetPlace();
  }, [isIn]);
  // Another tab may be the one that logs in.
  useEffect(() => onPageKey(askAgain), []);

  if (isIn && me.data !== undefined) return children(me.data);
  // Another user has logins of their own at remote servers, and nothing else here.
  if (me.data !== undefined && !refused && me.data.user !== null && !me.data.owner && me.data.scopes.includes("call"))
    return (
      <Suspense fallback={<Skeleton lines={6} label={t(shell.loggingIn)} />}>
        <OwnLogins me={me.data} />
      </Suspense>
    );
  if (trading || (me.data === undefined && me.error === null)) return <Skeleton lines={6} label={t(shell.loggingIn)} />;
  if (me.error !== null && !refused)
    return (
      <main className="mx-auto max-w-md p-6">
        <h1 className="sr-only">Toolcrib</h1>
        <FailureBox error={me.error} onRetry={() => void me.refetch()} />
      </main>
    );
  // A logout would have taken the key away.
  return <Login reason={loginError} ended={keptPageKey() !== undefined} onDone={askAgain} />;
}

function askAgain(): void {
  void queryClient.invalidateQueries({ queryKey: ["me"] });
}
