import type { ComponentProps } from "react";
import { Icon, type IconName } from "./icon.tsx";

const BASE =
  "inline-flex items-center justify-center gap-1.5 rounded-md font-medium whitespace-nowrap select-none transition-colors disabled:opacity-55 disabled:cursor-not-allowed";

const VARIANTS = {
  primary: "bg-accent text-accent-ink enabled:hover:opacity-90 border border-transparent",
  plain: "bg-panel text-ink border border-line-strong enabled:hover:bg-hover",
  danger: "bg-panel text-bad border border-bad enabled:hover:bg-bad-wash",
  ghost: "text-soft border border-transparent enabled:hover:bg-hover enabled:hover:text-ink",
} as const;

const SIZES = { md: "min-h-9 px-3", sm: "min-h-7 px-2 text-sm" } as const;

interface ButtonProps extends ComponentProps<"button"> {
  readonly variant?: keyof typeof VARIANTS;
  readonly size?: keyof typeof SIZES;
  readonly icon?: IconName;
  /** Under way: it cannot be pressed again. */
  readonly busy?: boolean;
}

export function Button({ variant = "plain", size = "md", icon, busy, className = "", children, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={rest.disabled === true || busy === true}
      aria-busy={busy}
      className={`${BASE} ${VARIANTS[variant]} ${SIZES[size]} ${className}`}
    >
      {busy === true ? <Spinner /> : icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** A button with only an icon; `label` is its name. */
export function IconButton({
  label,
  icon,
  className = "",
  ...rest
}: ComponentProps<"button"> & { readonly label: string; readonly icon: IconName }) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      {...rest}
      className={`inline-flex size-8 shrink-0 items-center justify-center rounded-md text-soft hover:bg-hover hover:text-ink ${className}`}
    >
      <Icon name={icon} />
    </button>
  );
}

export function Spinner() {
  return (
    <span
      aria-hidden="true"
      className="size-3.5 shrink-0 animate-spin rounded-full border-2 border-current border-t-transparent"
    />
  );
}
