import { AlertDialog, Dialog as RadixDialog } from "radix-ui";
import { type ReactNode, useState } from "react";
import { components } from "../messages/components.ts";
import { t } from "../messages/messages.ts";
import { Button, IconButton } from "./button.tsx";
import { FailureBox } from "./states.tsx";

const OVERLAY = "fixed inset-0 z-40 bg-[rgb(8_14_12/55%)]";
const BOX =
  "fixed z-50 flex flex-col border border-line bg-panel shadow-float inset-x-0 bottom-0 max-h-[94dvh] rounded-t-xl sm:inset-x-auto sm:top-1/2 sm:bottom-auto sm:left-1/2 sm:max-h-[88dvh] sm:-translate-x-1/2 sm:-translate-y-1/2 sm:rounded-xl";

/** The element that had the focus before the first open dialog; a dialog that follows another one keeps it. */
let opener: Element | null = null;

/** Gives the focus back to what opened the dialog, or to the view if that is gone. */
function useFocusBack(open: boolean): (event: Event) => void {
  const [was, setWas] = useState(false);
  // While drawing: afterwards the dialog has the focus.
  if (open !== was) {
    setWas(open);
    const { activeElement } = document;
    if (open && activeElement?.closest("[role=dialog], [role=alertdialog], body > :not(#root)") === null)
      opener = activeElement;
  }
  return (event) => {
    event.preventDefault();
    // Another dialog took over.
    if (document.activeElement?.closest("[role=dialog], [role=alertdialog]")) return;
    const isThere = opener?.isConnected === true && opener !== document.body;
    const target = isThere ? opener : document.querySelector("#main");
    if (target instanceof HTMLElement) target.focus();
  };
}

interface DialogProps {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly title: string;
  readonly description?: ReactNode;
  /** Stays below what scrolls. */
  readonly footer?: ReactNode;
  readonly wide?: boolean;
  readonly children: ReactNode;
}

export function Dialog({ open, onOpenChange, title, description, footer, wide = false, children }: DialogProps) {
  const focusBack = useFocusBack(open);
  return (
    <RadixDialog.Root open={open} onOpenChange={onOpenChange}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className={OVERLAY} />
        <RadixDialog.Content
          onCloseAutoFocus={focusBack}
          className={`${BOX} ${wide ? "sm:w-[min(60rem,94vw)]" : "sm:w-[min(40rem,94vw)]"}`}
          {...(description === undefined ? { "aria-describedby": undefined } : {})}
        >
          <div className="flex items-start justify-between gap-3 border-b border-line px-4 py-3">
            <div className="min-w-0">
              <RadixDialog.Title className="text-lg font-semibold">{title}</RadixDialog.Title>
              {description !== undefined && (
                <RadixDialog.Description className="text-soft">{description}</RadixDialog.Description>
              )}
            </div>
            <RadixDialog.Close asChild>
              <IconButton label={t(components.close)} icon="close" />
            </RadixDialog.Close>
          </div>
          <div className="min-h-0 flex-1 overflow-y-auto p-4">{children}</div>
          {footer !== undefined && (
            <div className="flex flex-wrap items-center justify-end gap-2 border-t border-line px-4 py-3">{footer}</div>
          )}
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  );
}

interface ConfirmProps {
  readonly open: boolean;
  readonly onOpenChange: (open: boolean) => void;
  readonly title: string;
  readonly children: ReactNode;
  /** The label of the button, such as "Remove". */
  readonly action: string;
  readonly danger?: boolean;
  readonly busy?: boolean;
  /** Of the last try. */
  readonly error?: unknown;
  readonly onConfirm: () => void;
}

/** Asks before something that is not taken back easily. It stays open until `onOpenChange(false)` is called. */
export function ConfirmDialog(props: ConfirmProps) {
  const { open, onOpenChange, title, children, action, danger = false, busy = false, error, onConfirm } = props;
  const focusBack = useFocusBack(open);
  return (
    <AlertDialog.Root open={open} onOpenChange={onOpenChange}>
      <AlertDialog.Portal>
        <AlertDialog.Overlay className={OVERLAY} />
        <AlertDialog.Content onCloseAutoFocus={focusBack} className={`${BOX} gap-3 p-4 sm:w-[min(28rem,94vw)]`}>
          <AlertDialog.Title className="text-lg font-semibold">{title}</AlertDialog.Title>
          <AlertDialog.Description asChild>
            <div className="text-soft">{children}</div>
          </AlertDialog.Description>
          {error !== undefined && error !== null && <FailureBox error={error} />}
          <div className="mt-1 flex flex-wrap justify-end gap-2">
            <AlertDialog.Cancel asChild>
              <Button>{t(components.cancel)}</Button>
            </AlertDialog.Cancel>
            <Button variant={danger ? "danger" : "primary"} busy={busy} onClick={onConfirm}>
              {action}
            </Button>
          </div>
        </AlertDialog.Content>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
