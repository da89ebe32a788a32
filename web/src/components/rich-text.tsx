import { Fragment, type ReactNode } from "react";
import { type Message, partsOf } from "../messages/messages.ts";

interface RichTextProps {
  readonly message: Message;
  readonly values?: Readonly<Record<string, ReactNode>>;
}

/** A message with links, badges or code in it. */
export function RichText({ message, values = {} }: RichTextProps) {
  return partsOf<ReactNode>(message, values).map((part, index) =>
    "text" in part ? (
      part.text
    ) : "code" in part ? (
      <code key={index} className="rounded-sm bg-sunken px-1 font-mono text-ink">
        {part.code}
      </code>
    ) : (
      <Fragment key={index}>{part.value}</Fragment>
    ),
  );
}
