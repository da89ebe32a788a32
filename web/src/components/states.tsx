/** Placeholders for empty lists, for loading, and for errors. */
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { failureOf } from "../failure.ts";
import { components } from "../messages/components.ts";
import { t } from "../messages/messages.ts";
import { Button } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";

interface EmptyProps {
  readonly title: string;
  readonly icon?: IconName;
  readonly children?: ReactNode;
  readonly action?: ReactNode;
}

export function Empty({ title, icon = "search", children, action }: EmptyProps) {
  return (
    <div className="flex flex-col items-center gap-2 px-4 py-10 text-center">
      <span aria-hidden="true" className="mb-1 flex size-12 items-center justify-center rounded-full bg-sunken">
        <Icon name={icon} className="size-6 text-faint" />
      </span>
      <p className="font-medium">{title}</p>
      {children !== undefined && <div className="max-w-md text-soft">{children}</div>}
      {action !== undefined && <div className="mt-2">{action}</div>}
    </div>
  );
}

/** Grey bars where lines will be. */
export function Skeleton({
  lines = 4,
  label = t(components.loading),
}: {
  readonly lines?: number;
  readonly label?: string;
}) {
  return (
    <div role="status" aria-label={label} className="flex flex-col gap-3 p-4">
      {Array.from({ length: lines }, (_, index) => (
        <div
          key={index}
          aria-hidden="true"
          className={`h-4 animate-pulse rounded-sm bg-hover ${["w-11/12", "w-4/5", "w-2/3"][index % 3] ?? ""}`}
        />
      ))}
    </div>
  );
}

/** An error with its hint, its code, and a button to try again. */
export function FailureBox({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) {
  const { message, hint, code } = failureOf(error);
  return (
    <div
      role="alert"
      className="flex flex-wrap items-start gap-3 rounded-md border border-bad bg-bad-wash p-3 text-ink"
    >
      <Icon name="warning" className="mt-0.5 size-4 text-bad" />
      <div className="min-w-0 flex-1">
        <p className="font-medium break-words whitespace-pre-wrap">{message}</p>
        {hint !== undefined && (
          <p className="mt-0.5 break-words text-soft">
            <WithCode text={hint} />
          </p>
        )}
        {code !== "" && <p className="mt-0.5 font-mono text-xs text-soft">{code}</p>}
      </div>
      {onRetry !== undefined && (
        <Button size="sm" icon="refresh" onClick={onRetry}>
          {t(components.retry)}
        </Button>
      )}
    </div>
  );
}

/** Hints name commands between backticks. */
function WithCode({ text }: { readonly text: string }) {
  return text.split("`").map((part, index) =>
    index % 2 === 0 ? (
      part
    ) : (
      <code key={index} className="font-mono text-ink">
        {part}
      </code>
    ),
  );
}

interface LoadedProps<Value> {
  readonly query: Pick<UseQueryResult<Value>, "data" | "error" | "refetch">;
  readonly skeleton?: ReactNode;
  readonly children: (value: Value) => ReactNode;
}

/** A query's three faces. An error beside an older answer leaves the answer standing. */
export function Loaded<Value>({ query, skeleton = <Skeleton />, children }: LoadedProps<Value>) {
  const failure = query.error !== null && (
    <div className="p-3">
      <FailureBox error={query.error} onRetry={() => void query.refetch()} />
    </div>
  );
  if (query.data === undefined) return failure === false ? skeleton : failure;
  return (
    <>
      {failure}
      {children(query.data)}
    </>
  );
}
