/** Logins at remote servers: for operators a view of the page, for other users all of it. */
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import type { ServerLogin } from "../../../../src/contract/server-schemas.ts";
import type { Me } from "../../../../src/contract/settings-schemas.ts";
import { logout, run } from "../../api.ts";
import { Badge, type Tone } from "../../components/badge.tsx";
import { Button, Spinner } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { Page, Section } from "../../components/page.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Empty, FailureBox, Loaded, Skeleton } from "../../components/states.tsx";
import { Time } from "../../components/time.tsx";
import { toast } from "../../components/toast.tsx";
import { logins } from "../../messages/logins.ts";
import { type Message, t } from "../../messages/messages.ts";
import { queryClient, useChange, useOperation } from "../../state/queries.ts";
import { nextCallback } from "./callback.ts";
import { LoginButton } from "./login-button.tsx";

const route = getRouteApi("/logins");

export function LoginsView() {
  const { server } = route.useSearch();
  return (
    <Page title={t(logins.title)} description={t(logins.about)}>
      <Logins wanted={server} linked />
    </Page>
  );
}

/** The page of a user who is not an operator. */
export function OwnLogins({ me }: { readonly me: Me }) {
  const wanted = new URLSearchParams(location.search).get("server") ?? undefined;
  const leave = async (): Promise<void> => {
    await logout();
    await queryClient.invalidateQueries({ queryKey: ["me"] });
  };
  return (
    <main className="mx-auto w-full max-w-3xl">
      <Page
        title={t(logins.title)}
        description={t(logins.you, { user: me.user ?? "" })}
        actions={
          <Button size="sm" onClick={() => void leave()}>
            {t(logins.leave)}
          </Button>
        }
      >
        <Logins wanted={wanted} linked={false} />
      </Page>
    </main>
  );
}

function Logins({ wanted, linked }: { readonly wanted: string | undefined; readonly linked: boolean }) {
  const query = useOperation("listLogins", {});
  const ending = useEnding();
  return (
    <>
      {ending.state === "running" && (
        <p role="status" className="flex items-center gap-2 text-soft">
          <Spinner /> {t(logins.finishing)}
        </p>
      )}
      {ending.state === "failed" && <FailureBox error={ending.error} />}
      {ending.state === "down" && (
        <p role="alert" className="rounded-md border border-warn bg-warn-wash px-3 py-2 text-ink">
          {t(logins.doneButDown, { server: ending.server, error: ending.error })}
        </p>
      )}
      <Section title={t(logins.list)} flush>
        <Loaded query={query} skeleton={<Skeleton lines={4} label={t(logins.loading)} />}>
          {({ logins: found }) =>
            found.length === 0 ? (
              <Empty title={t(logins.none)} icon="lock" />
            ) : (
              <ul className="divide-y divide-line">
                {/* The one that a link is about comes first. */}
                {found
                  .toSorted((a, b) => Number(b.serverId === wanted) - Number(a.serverId === wanted))
                  .map((login) => (
                    <Line key={login.serverId} login={login} wanted={login.serverId === wanted} linked={linked} />
                  ))}
              </ul>
            )
          }
        </Loaded>
      </Section>
    </>
  );
}

type Ending =
  | { readonly state: "none" | "running" }
  | { readonly state: "failed"; readonly error: unknown }
  | { readonly state: "down"; readonly server: string; readonly error: string };

/** Ends the login that the browser has come back from. */
function useEnding(): Ending {
  const [ending, setEnding] = useState<Ending>({ state: "none" });
  useEffect(() => {
    const callback = nextCallback();
    if (callback === undefined) return;
    setEnding({ state: "running" });
    run("finishLogin", callback)
      .then(({ serverId: server, connected, error }) => {
        if (connected) toast(t(logins.done, { server }));
        setEnding(connected ? { state: "none" } : { state: "down", server, error: error ?? "" });
      })
      .catch((error: unknown) => setEnding({ state: "failed", error }))
      .finally(() => void queryClient.invalidateQueries());
  }, []);
  return ending;
}

const STATES: Readonly<Record<ServerLogin["state"], readonly [Message, Tone]>> = {
  ok: [logins.ok, "ok"],
  expires_soon: [logins.soon, "warn"],
  login_needed: [logins.needed, "bad"],
};

interface LineProps {
  readonly login: ServerLogin;
  readonly wanted: boolean;
  readonly linked: boolean;
}

function Line({ login, wanted, linked }: LineProps) {
  const { serverId, name, state, expiresAt, user, perUser, own } = login;
  const [asking, setAsking] = useState(false);
  const end = useChange("endLogin", {
    outdates: ["listLogins", "listServers", "getServer"],
    onSuccess: () => setAsking(false),
  });
  const [label, tone] = STATES[state];
  return (
    <li className={`flex flex-wrap items-center gap-x-4 gap-y-2 px-4 py-3 ${wanted ? "bg-accent-wash" : ""}`}>
      <div className="min-w-0 flex-1">
        <div className="flex flex-wrap items-center gap-2">
          {linked ? (
            <Link
              to="/servers"
              search={{ server: serverId }}
              className="font-medium text-accent hover:underline"
              title={t(logins.openServer)}
            >
              {name}
            </Link>
          ) : (
            <span className="font-medium">{name}</span>
          )}
          <Badge tone={tone}>{t(label)}</Badge>
        </div>
        <p className="text-sm text-soft">
          {t(!perUser ? logins.shared : user === null ? logins.ofHub : logins.yours)}
          {expiresAt !== undefined && state !== "login_needed" && (
            <>
              {" · "}
              <RichText message={logins.until} values={{ when: <Time at={expiresAt} clock /> }} />
            </>
          )}
          {!own && ` · ${t(logins.operators)}`}
        </p>
      </div>
      {own && (
        <div className="flex flex-wrap gap-2">
          {state !== "login_needed" && (
            <Button size="sm" onClick={() => setAsking(true)}>
              {t(logins.logOut)}
            </Button>
          )}
          <LoginButton serverId={serverId} again={state !== "login_needed"} />
        </div>
      )}
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={t(logins.logOutOf, { server: name })}
        action={t(logins.logOut)}
        danger
        busy={end.isPending}
        error={end.error}
        onConfirm={() => end.mutate({ serverId })}
      >
        {t(logins.logOutHow)}
      </ConfirmDialog>
    </li>
  );
}
