/** Roles of the config: what each may see and use; made, edited and removed as a diff that is shown first. */
import { useState } from "react";
import type { RoleInfo } from "../../../../src/contract/change-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Checkbox, Field, TextArea, TextInput } from "../../components/fields.tsx";
import { type ConfigChange, ReviewChange } from "../../components/review-change.tsx";
import { RichText } from "../../components/rich-text.tsx";
import { Empty, Loaded, Skeleton } from "../../components/states.tsx";
import { components } from "../../messages/components.ts";
import { t } from "../../messages/messages.ts";
import { rules } from "../../messages/rules.ts";
import { useOperation } from "../../state/queries.ts";
import { draftOf, type RoleDraft, settingsOf } from "./role-draft.ts";

export function RolesTab() {
  const query = useOperation("listRoles", {});
  const [edited, setEdited] = useState<RoleInfo | "new">();
  const [changes, setChanges] = useState<readonly ConfigChange[]>();
  const add = (
    <Button variant="primary" size="sm" icon="plus" onClick={() => setEdited("new")}>
      {t(rules.newRole)}
    </Button>
  );
  return (
    <>
      <Loaded query={query} skeleton={<Skeleton lines={4} label={t(rules.roles)} />}>
        {({ roles }) =>
          roles.length === 0 ? (
            <Empty title={t(rules.noRoles)} icon="sessions" action={add}>
              {t(rules.noRolesHow)}
            </Empty>
          ) : (
            <div className="flex flex-col gap-3 p-4">
              <div className="flex flex-wrap items-start justify-between gap-2">
                <div className="min-w-0 flex-1">
                  <h2 className="font-semibold">{t(rules.roles)}</h2>
                  <p className="text-soft">{t(rules.noRolesHow)}</p>
                </div>
                {add}
              </div>
              <ul aria-label={t(rules.roles)} className="divide-y divide-line rounded-md border border-line">
                {roles.map((role) => (
                  <RoleLine
                    key={role.role}
                    role={role}
                    onEdit={() => setEdited(role)}
                    onRemove={() => setChanges([{ kind: "role", role: role.role, settings: null }])}
                  />
                ))}
              </ul>
            </div>
          )
        }
      </Loaded>
      {edited !== undefined && changes === undefined && (
        <RoleDialog
          role={edited === "new" ? undefined : edited}
          onClose={() => setEdited(undefined)}
          onReview={(change) => setChanges([change])}
        />
      )}
      {changes !== undefined && (
        <ReviewChange
          title={t(rules.review)}
          changes={changes}
          onClose={() => {
            setChanges(undefined);
            setEdited(undefined);
          }}
        />
      )}
    </>
  );
}

interface RoleLineProps {
  readonly role: RoleInfo;
  readonly onEdit: () => void;
  readonly onRemove: () => void;
}

function RoleLine({ role: info, onEdit, onRemove }: RoleLineProps) {
  const { role, servers, editable } = info;
  const draft = draftOf(info);
  const count = [draft.allow, draft.ask, draft.deny].reduce((sum, list) => sum + list.length, 0);
  const seen = draft.servers.length === 0 ? t(rules.allServers) : draft.servers.join(", ");
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 px-3 py-2">
      <span className="min-w-0 flex-1 basis-40">
        <span className="font-medium break-words">{role}</span>
        <span className="block text-sm break-words text-soft">
          {seen} · {t(rules.rulesCount, { count })}
          {servers.length > 0 && ` · ${servers.join(", ")}`}
        </span>
      </span>
      {editable ? (
        <span className="flex gap-2">
          <Button size="sm" icon="edit" aria-label={t(rules.editRole, { role })} onClick={onEdit}>
            {t(rules.edit)}
          </Button>
          <Button size="sm" variant="danger" icon="trash" aria-label={t(rules.removeRole, { role })} onClick={onRemove}>
            {t(rules.remove)}
          </Button>
        </span>
      ) : (
        <Badge>{t(rules.notEditable)}</Badge>
      )}
    </li>
  );
}

interface RoleDialogProps {
  /** Undefined for a new one. */
  readonly role: RoleInfo | undefined;
  readonly onClose: () => void;
  readonly onReview: (change: ConfigChange) => void;
}

const LISTS = [
  ["allow", rules.patternsAllow],
  ["ask", rules.patternsAsk],
  ["deny", rules.patternsDeny],
  ["views", rules.views],
] as const;

function RoleDialog({ role, onClose, onReview }: RoleDialogProps) {
  const servers = useOperation("listServers", { limit: 1000 });
  const [name, setName] = useState(role?.role ?? "");
  const [draft, setDraft] = useState<RoleDraft>(() => draftOf(role));
  const ids = [...new Set([...(servers.data?.servers.map(({ id }) => id) ?? []), ...draft.servers])];
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={role === undefined ? t(rules.newRole) : t(rules.editRole, { role: role.role })}
      description={t(rules.shownFirst)}
      footer={
        <>
          <Button onClick={onClose}>{t(components.cancel)}</Button>
          <Button
            variant="primary"
            disabled={name.trim() === ""}
            onClick={() => onReview({ kind: "role", role: name.trim(), settings: settingsOf(draft, role) })}
          >
            {t(rules.continue)}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <Field label={t(rules.roleName)} required>
          {(attributes) => (
            <TextInput
              {...attributes}
              value={name}
              readOnly={role !== undefined}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <fieldset className="flex flex-col gap-1">
          <legend className="font-medium">{t(rules.roleServers)}</legend>
          <p className="text-sm text-soft">{t(rules.roleServersHow)}</p>
          <div className="flex flex-wrap gap-x-4 gap-y-1">
            {ids.map((id) => (
              <Checkbox
                key={id}
                label={id}
                checked={draft.servers.includes(id)}
                onChange={(event) =>
                  setDraft({
                    ...draft,
                    servers: event.target.checked
                      ? [...draft.servers, id]
                      : draft.servers.filter((each) => each !== id),
                  })
                }
              />
            ))}
          </div>
        </fieldset>
        <p className="text-sm text-soft">
          <RichText message={rules.onePerLine} />
        </p>
        {LISTS.map(([key, label]) => (
          <Field key={key} label={t(label)}>
            {(attributes) => (
              <TextArea
                {...attributes}
                mono
                rows={2}
                defaultValue={draft[key].join("\n")}
                onChange={(event) => setDraft({ ...draft, [key]: linesOf(event.target.value) })}
              />
            )}
          </Field>
        ))}
      </div>
    </Dialog>
  );
}

function linesOf(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}
