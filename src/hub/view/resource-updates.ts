/** Who is notified of an updated resource: those who follow it, or the whole that it is a part of. */
import { splitMappedUri } from "../../catalog/public-uris.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Session } from "../../sessions/session.ts";
import type { HubEvents } from "../hub-events.ts";
import type { HubInternals } from "../hub-internals.ts";

export interface ResourceFollower {
  readonly session: Session;
  /** The resources that it follows, by public URI. */
  readonly followed: ReadonlySet<string>;
  /** Of one of them, or a part of one. */
  resourceUpdated(params: JsonObject): void;
}

export interface Addressed {
  readonly user?: string | null;
  readonly session?: string;
}

type Resources = { readonly internals: Pick<HubInternals, "resourceOrigin"> };

/** A server may report a part of a subscribed resource; clients subscribed to exactly that part come first. */
export function reportUpdate(
  hub: Resources,
  followers: Iterable<ResourceFollower>,
  event: HubEvents["resource-updated"],
): void {
  const { uri, params } = event;
  const concerned = [...followers].filter((follower) => isAddressedTo(follower, event));
  const exact = concerned.filter(({ followed }) => followed.has(uri));
  for (const follower of exact) {
    // A rule may have hidden it since.
    if (hub.internals.resourceOrigin(follower.session, uri) !== undefined) follower.resourceUpdated({ ...params, uri });
  }
  if (exact.length > 0) return;
  for (const follower of concerned) {
    const known = knownAs(hub, follower, event);
    if (known !== undefined) follower.resourceUpdated({ ...params, uri: known });
  }
}

/** The URI for a follower of the whole resource, or of the same under another URI. */
function knownAs(
  hub: Resources,
  { session, followed }: ResourceFollower,
  update: HubEvents["resource-updated"],
): string | undefined {
  const { server, uri, originUri } = update;
  for (const each of followed) {
    const whole = splitMappedUri(each)?.uri ?? each;
    if (originUri !== whole && !isSubResource(originUri, whole)) continue;
    const origin = hub.internals.resourceOrigin(session, each);
    if (origin?.source !== server || origin.name !== whole) continue;
    if (originUri === whole) return each;
    // A client can read what it is notified of.
    if (uri === originUri) session.links.add(uri, server);
    if (hub.internals.resourceOrigin(session, uri)?.source === server) return uri;
  }
  return undefined;
}

/** Messages of an isolated connection are for its user or session alone. */
export function isAddressedTo({ session }: { readonly session: Session }, { user, session: only }: Addressed): boolean {
  if (only !== undefined) return session.id === only;
  if (user === null) return session.owner && session.user === undefined;
  return user === undefined || session.user === user;
}

/** One of the two ends or begins with what divides the parts of a URI. */
function isSubResource(uri: string, whole: string): boolean {
  if (uri.length <= whole.length || !uri.startsWith(whole)) return false;
  return "/?#".includes(uri.charAt(whole.length)) || /[/?#]$/.test(whole);
}
