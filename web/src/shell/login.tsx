/** The way in: the link that `serve` prints, or a token. */
import { type FormEvent, useEffect, useState } from "react";
import { login } from "../api.ts";
import { BASE } from "../base.ts";
import { Button } from "../components/button.tsx";
import { Field, TextInput } from "../components/fields.tsx";
import { RichText } from "../components/rich-text.tsx";
import { FailureBox } from "../components/states.tsx";
import { t } from "../messages/messages.ts";
import { shell } from "../messages/shell.ts";
import { rememberPlace } from "./return-place.ts";

interface LoginProps {
  /** Why the caller is here, if more is known than that it has no cookie. */
  readonly reason: unknown;
  /** There was a login before, without a logout. */
  readonly ended: boolean;
  readonly onDone: () => void;
}

export function Login({ reason, ended, onDone }: LoginProps) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(reason);
  // Taken once: a new login has its key before the page is open.
  const [wasIn] = useState(ended);
  useEffect(() => {
    if (wasIn) rememberPlace();
  }, [wasIn]);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await login({ token: token.trim() });
      onDone();
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="mx-auto flex min-h-dvh w-full max-w-md flex-col justify-center gap-6 p-4">
      <div className="flex items-center gap-2">
        <img src={`${BASE}/icon.svg`} alt="" width="30" height="30" />
        <h1 className="text-xl font-semibold">{t(shell.logInTitle)}</h1>
      </div>
      {error !== undefined && <FailureBox error={error} />}
      {error === undefined && wasIn && (
        <p role="status" className="rounded-md border border-warn bg-warn-wash px-3 py-2 text-ink">
          {t(shell.loginEnded)}
        </p>
      )}
      <section aria-labelledby="by-link" className="rounded-lg border border-line bg-panel p-4">
        <h2 id="by-link" className="font-semibold">
          {t(shell.withLink)}
        </h2>
        <p className="mt-1 text-soft">
          <RichText message={shell.withLinkHow} />
        </p>
      </section>
      <section aria-labelledby="by-token" className="rounded-lg border border-line bg-panel p-4">
        <h2 id="by-token" className="font-semibold">
          {t(shell.withToken)}
        </h2>
        <form className="mt-2 flex flex-col gap-3" onSubmit={(event) => void submit(event)}>
          <Field label={t(shell.token)} hint={t(shell.tokenHint)}>
            {(attributes) => (
              <TextInput
                {...attributes}
                type="password"
                mono
                value={token}
                autoComplete="off"
                onChange={(event) => setToken(event.target.value)}
              />
            )}
          </Field>
          <div>
            <Button type="submit" variant="primary" busy={busy} disabled={token.trim() === ""}>
              {t(shell.logIn)}
            </Button>
          </div>
        </form>
      </section>
    </main>
  );
}
