/**
 * Markdown that a server or a skill wrote, as React elements. Nothing becomes HTML by itself: tags are shown as text, images are
 * not loaded, and a link says which host it leads to.
 */
import { lexer, type MarkedToken, type Token } from "marked";
import { createContext, memo, type ReactNode, useContext } from "react";
import { components } from "../messages/components.ts";
import { t } from "../messages/messages.ts";
import { safeLink } from "./safe-link.ts";

/** Texts above this are shown as they are: a deeply nested one could freeze the page. */
const LONGEST = 200_000;

/** For texts of Toolcrib's own: the page that a relative link leads to, and headings that can be linked to. */
export interface OwnText {
  readonly link: (href: string, children: ReactNode) => ReactNode;
  readonly headingId: (heading: string) => string;
}

const Own = createContext<OwnText | undefined>(undefined);

export const Markdown = memo(function Markdown({ text, own }: { readonly text: string; readonly own?: OwnText }) {
  let tokens: Token[];
  try {
    if (text.length > LONGEST) throw new RangeError("too long");
    tokens = lexer(text, { gfm: true });
  } catch {
    return <pre className="font-sans whitespace-pre-wrap">{text}</pre>;
  }
  return (
    <Own value={own}>
      <div className="prose min-w-0 break-words">{nodes(tokens)}</div>
    </Own>
  );
});

function nodes(tokens: readonly Token[] | undefined): ReactNode {
  // No extensions are registered, so all tokens are marked's own.
  return tokens?.map((token, index) => <Node key={index} token={token as MarkedToken} />);
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: " " };

function plain(text: string): string {
  return text.replaceAll(/&(amp|lt|gt|quot|#39|nbsp);/g, (whole, name: string) => ENTITIES[name] ?? whole);
}

function Node({ token }: { readonly token: MarkedToken }): ReactNode {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return (
        <Heading depth={token.depth} text={token.text}>
          {nodes(token.tokens)}
        </Heading>
      );
    case "paragraph":
      return <p>{nodes(token.tokens)}</p>;
    case "text":
      return token.tokens === undefined ? plain(token.text) : nodes(token.tokens);
    case "escape":
      return token.text;
    case "strong":
      return <strong>{nodes(token.tokens)}</strong>;
    case "em":
      return <em>{nodes(token.tokens)}</em>;
    case "del":
      return <del>{nodes(token.tokens)}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "code":
      return (
        // It scrolls, so it can be reached by keyboard.
        <pre tabIndex={0}>
          <code>{token.text}</code>
        </pre>
      );
    case "br":
      return <br />;
    case "hr":
      return <hr className="border-line" />;
    case "blockquote":
      return <blockquote>{nodes(token.tokens)}</blockquote>;
    case "list":
      return token.ordered ? (
        <ol start={token.start === "" ? 1 : token.start}>{nodes(token.items)}</ol>
      ) : (
        <ul>{nodes(token.items)}</ul>
      );
    case "list_item":
      return <li>{nodes(token.tokens)}</li>;
    case "checkbox":
      return token.checked ? "[x] " : "[ ] ";
    case "link":
      return <Link href={token.href}>{nodes(token.tokens)}</Link>;
    case "image":
      return <Link href={token.href}>{imageText(plain(token.text))}</Link>;
    case "table":
      return (
        <div className="overflow-x-auto">
          <table>
            <thead>
              <tr>
                {token.header.map((cell, index) => (
                  <th key={index}>{nodes(cell.tokens)}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {token.rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, column) => (
                    <td key={column}>{nodes(cell.tokens)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "html":
      return token.text;
  }
}

function imageText(name: string): string {
  return t(components.image, { name: name === "" ? t(components.nameless) : name });
}

const OWN_HEADINGS = [
  ["h2", "text-xl font-semibold"],
  ["h3", "mt-8! text-lg"],
  ["h4", ""],
] as const;

interface HeadingProps {
  readonly depth: number;
  readonly text: string;
  readonly children: ReactNode;
}

function Heading({ depth, text, children }: HeadingProps) {
  const own = useContext(Own);
  if (own !== undefined) {
    // h1 is the page's own.
    const [Tag, look] = OWN_HEADINGS[Math.min(depth, OWN_HEADINGS.length) - 1] ?? OWN_HEADINGS[0];
    return (
      <Tag id={own.headingId(text)} tabIndex={-1} className={`scroll-mt-4 outline-none ${look}`}>
        {children}
      </Tag>
    );
  }
  // h1 and h2 are the page's own.
  const Tag = (["h3", "h4", "h5", "h6"] as const)[Math.min(depth - 1, 3)] ?? "h6";
  return <Tag>{children}</Tag>;
}

function Link({ href, children }: { readonly href: string; readonly children: ReactNode }) {
  const own = useContext(Own);
  const link = safeLink(href);
  if (link === undefined && own !== undefined) return own.link(href, children);
  if (link === undefined)
    return (
      <span>
        {children} <span className="text-faint">({href})</span>
      </span>
    );
  return (
    <a href={link.href} target="_blank" rel="noopener noreferrer">
      {children} <span className="text-faint">({link.host})</span>
    </a>
  );
}
