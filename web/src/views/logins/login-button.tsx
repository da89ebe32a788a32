/** Leaves for the authorization server of a remote server; the browser comes back to the page. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { run } from "../../api.ts";
import { Button } from "../../components/button.tsx";
import { safeLink } from "../../components/safe-link.ts";
import { toastError } from "../../components/toast.tsx";
import { failureOf } from "../../failure.ts";
import { logins } from "../../messages/logins.ts";
import { t } from "../../messages/messages.ts";
import { isObject } from "../tools/schema.ts";

interface LoginButtonProps {
  readonly serverId: string;
  /** There is one already. */
  readonly again?: boolean;
}

export function LoginButton({ serverId, again = false }: LoginButtonProps) {
  const [busy, setBusy] = useState(false);
  const begin = async (): Promise<void> => {
    setBusy(true);
    try {
      const { url } = await run("beginLogin", { serverId });
      const link = safeLink(url);
      if (link === undefined) throw new TypeError(url);
      location.assign(link.href);
    } catch (error) {
      setBusy(false);
      toastError(error);
    }
  };
  return (
    <Button size="sm" variant={again ? "plain" : "primary"} icon="lock" busy={busy} onClick={() => void begin()}>
      {again ? t(logins.logInAgain) : t(logins.logInAt, { server: serverId })}
    </Button>
  );
}

/** A link to what has to be visited before a call can succeed: the login, or an address of the server. */
export function NeededVisit({ error }: { readonly error: unknown }) {
  const { details = {} } = failureOf(error);
  const { loginNeeded, server, rpc } = details;
  if (loginNeeded === true && typeof server === "string")
    return (
      <div className="mt-2 flex flex-wrap items-center gap-2 rounded-md bg-warn-wash px-3 py-2 text-ink">
        <span className="min-w-0 flex-1">{t(logins.neededForCall)}</span>
        <Link to="/logins" search={{ server }} className="font-medium text-accent underline">
          {t(logins.logInAt, { server })}
        </Link>
      </div>
    );
  const links = elicitedLinks(rpc);
  if (links.length === 0) return null;
  return (
    <div className="mt-2 rounded-md bg-warn-wash px-3 py-2 text-ink">
      <p>{t(logins.visitFirst)}</p>
      <ul>
        {links.map(({ href }) => (
          <li key={href}>
            <a href={href} target="_blank" rel="noopener noreferrer" className="break-all text-accent underline">
              {href}
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** MCP's code for a call that needs addresses visited first. */
const URL_ELICITATION_REQUIRED = -32042;

function elicitedLinks(rpc: unknown): { readonly href: string }[] {
  if (!isObject(rpc) || rpc["code"] !== URL_ELICITATION_REQUIRED || !isObject(rpc["data"])) return [];
  const { elicitations } = rpc["data"];
  return (Array.isArray(elicitations) ? elicitations : [])
    .filter(isObject)
    .flatMap(({ url }) => (typeof url === "string" ? (safeLink(url) ?? []) : []));
}
