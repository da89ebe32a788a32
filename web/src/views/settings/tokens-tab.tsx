/** Tokens of the config: made once, shown once, listed with their last use, and revoked. */
import { useState } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field, Radio, Select, TextInput } from "../../components/fields.tsx";
import { type ConfigChange, ReviewChange } from "../../components/review-change.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { Cell, RowHead, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { components } from "../../messages/components.ts";
import { t } from "../../messages/messages.ts";
import { rules } from "../../messages/rules.ts";
import { useOperation } from "../../state/queries.ts";

export function TokensTab() {
  const query = useOperation("listTokens", {});
  const [isAdding, setIsAdding] = useState(false);
  const [changes, setChanges] = useState<readonly ConfigChange[]>();
  const add = (
    <Button variant="primary" size="sm" icon="plus" onClick={() => setIsAdding(true)}>
      {t(rules.newToken)}
    </Button>
  );
  return (
    <>
      <Loaded query={query} skeleton={<Skeleton lines={4} label={t(rules.tokens)} />}>
        {({ tokens }) =>
          tokens.length === 0 ? (
            <Empty title={t(rules.noTokens)} icon="lock" action={add}>
              {t(rules.noTokensHow)}
            </Empty>
          ) : (
            <div className="flex flex-col gap-3 p-4">
              <div className="flex flex-wrap items-start justify-between gap-2">
                <div>
                  <h2 className="font-semibold">{t(rules.tokens)}</h2>
                  <p className="text-soft">{t(rules.tokensHow)}</p>
                </div>
                {add}
              </div>
              <Table
                label={t(rules.tokens)}
                className="rounded-md border border-line"
                heads={[
                  t(rules.tokenName),
                  t(rules.user),
                  t(rules.role),
                  t(rules.may),
                  t(rules.made),
                  t(rules.lastUsed),
                  "",
                ]}
              >
                {tokens.map(({ name, user, role, scopes, created, lastUsed }, index) => (
                  <tr key={name ?? index}>
                    <RowHead>{name ?? <span className="font-normal text-faint">{t(rules.unnamed)}</span>}</RowHead>
                    <Cell className="break-all">{user ?? <span className="text-faint">{t(rules.noUser)}</span>}</Cell>
                    <Cell className="break-all">{role ?? <span className="text-faint">{t(rules.anyRole)}</span>}</Cell>
                    <Cell>
                      <span className="flex flex-wrap gap-1">
                        {scopes.map((scope) => (
                          <Badge key={scope} tone={scope === "admin" ? "warn" : "neutral"}>
                            {scope}
                          </Badge>
                        ))}
                      </span>
                    </Cell>
                    <Cell className="whitespace-nowrap">{created}</Cell>
                    <Cell className="whitespace-nowrap">
                      {lastUsed === null ? (
                        <span className="text-faint">{t(rules.never)}</span>
                      ) : (
                        <Time at={lastUsed} />
                      )}
                    </Cell>
                    <Cell number>
                      {name !== null && (
                        <Button
                          size="sm"
                          variant="danger"
                          aria-label={t(rules.revokeToken, { name })}
                          onClick={() => setChanges([{ kind: "revokeToken", name }])}
                        >
                          {t(rules.revoke)}
                        </Button>
                      )}
                    </Cell>
                  </tr>
                ))}
              </Table>
            </div>
          )
        }
      </Loaded>
      {isAdding && changes === undefined && (
        <NewToken onClose={() => setIsAdding(false)} onReview={(change) => setChanges([change])} />
      )}
      {changes !== undefined && (
        <ReviewChange
          title={t(rules.review)}
          changes={changes}
          onClose={() => {
            setChanges(undefined);
            setIsAdding(false);
          }}
        />
      )}
    </>
  );
}

const RIGHTS = [
  ["read", rules.mayRead],
  ["call", rules.mayCall],
  ["approve", rules.mayApprove],
  ["admin", rules.mayAdmin],
] as const;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

interface NewTokenProps {
  readonly onClose: () => void;
  readonly onReview: (change: ConfigChange) => void;
}

function NewToken({ onClose, onReview }: NewTokenProps) {
  const roles = useOperation("listRoles", {});
  const [name, setName] = useState("");
  const [user, setUser] = useState("");
  const [role, setRole] = useState("");
  const [right, setRight] = useState<(typeof RIGHTS)[number][0]>("call");
  const [tried, setTried] = useState(false);
  const isWrong = !NAME.test(name);
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={t(rules.newToken)}
      description={t(rules.shownFirst)}
      footer={
        <>
          <Button onClick={onClose}>{t(components.cancel)}</Button>
          <Button
            variant="primary"
            onClick={() => {
              setTried(true);
              if (isWrong) return;
              const bound = { ...(user === "" ? {} : { user }), ...(role === "" ? {} : { role }) };
              onReview({ kind: "token", name, ...bound, scopes: [right] });
            }}
          >
            {t(rules.continue)}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <Field
          label={t(rules.tokenName)}
          required
          hint={<RichText message={rules.tokenNameHow} />}
          error={tried && isWrong ? t(rules.badName) : undefined}
        >
          {(attributes) => (
            <TextInput {...attributes} mono value={name} onChange={(event) => setName(event.target.value)} />
          )}
        </Field>
        <Field label={t(rules.user)}>
          {(attributes) => <TextInput {...attributes} value={user} onChange={(event) => setUser(event.target.value)} />}
        </Field>
        <Field label={t(rules.role)}>
          {(attributes) => (
            <Select
              {...attributes}
              value={role}
              options={[
                ["", t(rules.anyRole)],
                ...(roles.data?.roles.map((each) => [each.role, each.role] as const) ?? []),
              ]}
              onChange={setRole}
            />
          )}
        </Field>
        <fieldset className="flex flex-col gap-1">
          <legend className="font-medium">{t(rules.may)}</legend>
          {RIGHTS.map(([scope, message]) => (
            <Radio
              key={scope}
              name="right"
              checked={right === scope}
              onChange={() => setRight(scope)}
              label={
                <>
                  <code className="font-mono text-sm">{scope}</code> {t(message)}
                </>
              }
            />
          ))}
        </fieldset>
      </div>
    </Dialog>
  );
}
