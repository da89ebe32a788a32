/** What a skill says that it is about: whoever writes about a product names the product's own site. */
import type { Skill } from "../../model/skill.ts";
import type { Address } from "./addresses.ts";
import { isAboutSecurity } from "./defence.ts";
import type { ScannedText } from "./scanned-text.ts";

export interface Subject {
  readonly skill: Skill;
  readonly document: ScannedText;
  /** It is about attacks and defence. */
  readonly security: boolean;
  /** The host belongs to what the skill is about: its name, its homepage, or a site that it speaks of throughout. */
  isOwn(address: Address): boolean;
}

/** Parts of names that say nothing about whose they are. */
const COMMON = new Set(
  "the and for skill skills agent agents api cli app apps get www install installer setup download downloads tool tools com org net dev io docs my use google open openclaw clawd claw claude cloud helper utility core update".split(
    " ",
  ),
);
const OFTEN = 3;
const MOST_SITES = 100;

export function subjectOf(skill: Skill, document: ScannedText): Subject {
  let security: boolean | undefined;
  const words = new Set(
    `${skill.name} ${skill.homepage ?? ""} ${skill.author ?? ""}`
      .toLowerCase()
      .split(/[^a-z0-9]{1,20}/)
      .filter((word) => word.length >= 3 && !COMMON.has(word)),
  );
  const counts = new Map<string, number>();
  return {
    skill,
    document,
    get security() {
      return (security ??= isAboutSecurity(skill, document));
    },
    isOwn({ host, url }) {
      const site = siteOf(host);
      const owner =
        /^https?:\/\/(?:www\.|raw\.)?(?:github(?:usercontent)?|gitlab|codeberg|bitbucket)\.\w{2,3}\/([\w.-]{1,80})\/([\w.-]{1,80})/.exec(
          url,
        );
      const names = (owner === null ? site : `${owner[1]} ${owner[2]}`).toLowerCase().split(/[^a-z0-9]{1,20}/);
      if (names.some((name) => words.has(name) || [...words].some((word) => word.length >= 5 && name.includes(word))))
        return true;
      if (owner !== null) return false;
      let count = counts.get(site);
      // Each costs a reading of the document; a real one names few places.
      if (count === undefined && counts.size >= MOST_SITES) return false;
      if (count === undefined) counts.set(site, (count = mentions(document, site)));
      return count >= OFTEN;
    },
  };
}

/** The name that somebody registered, roughly: the last two parts, or three below `co.uk` and free pages. */
function siteOf(host: string): string {
  const parts = host.split(".");
  const short = parts.at(-2) ?? "";
  return parts
    .slice(
      short.length <= 3 || /^(?:vercel|netlify|pages|github|workers|herokuapp|onrender|web)$/.test(short) ? -3 : -2,
    )
    .join(".");
}

function mentions({ lines }: ScannedText, site: string): number {
  let count = 0;
  for (const { text } of lines) if (text.includes(site)) count += 1;
  return count;
}
