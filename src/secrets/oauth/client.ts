/** Which OAuth client Toolcrib is at an authorization server: a configured one, a metadata document, or registered by itself. */
import type { OAuthClientInformationMixed } from "@modelcontextprotocol/client";
import { ToolcribError } from "../../model/errors.ts";
import type { OAuthSettings } from "../../model/server-spec.ts";
import type { AuthorizationServer } from "./discover.ts";
import { oauthFailure } from "./failures.ts";
import type { GrantClient } from "./grant.ts";
import type { OAuthFetch } from "./oauth-fetch.ts";
import type { OAuthSdk } from "./sdk.ts";

interface ClientRequest {
  readonly sdk: OAuthSdk;
  readonly at: AuthorizationServer;
  readonly settings: OAuthSettings;
  readonly redirectUri: string;
  readonly scope: string | undefined;
  readonly fetchFn: OAuthFetch;
  /** From an earlier login at the same issuer. */
  readonly known: GrantClient | undefined;
}

export async function clientFor(request: ClientRequest): Promise<GrantClient> {
  const { sdk, at, settings, redirectUri, scope, fetchFn, known } = request;
  if (settings.clientId !== undefined) return { id: settings.clientId, origin: "configured", redirectUri };
  if (settings.clientMetadataUrl !== undefined && at.metadata?.client_id_metadata_document_supported === true) {
    if (!sdk.isHttpsUrl(settings.clientMetadataUrl)) {
      throw new ToolcribError("invalid_config", "auth.clientMetadataUrl must be an https address with a path.");
    }
    return { id: settings.clientMetadataUrl, origin: "document", redirectUri };
  }
  // A registration is for one redirect address; with another port it would be refused by most.
  if (known?.origin === "registered" && known.redirectUri === redirectUri) return known;
  if (at.metadata !== undefined && at.metadata.registration_endpoint === undefined) {
    throw new ToolcribError("unauthorized", `${new URL(at.issuer).host} takes no clients that register themselves`, {
      hint: "Register a client there by hand and set `auth.clientId`, and `auth.clientSecret` if it has one.",
      details: { status: 401, sent: false },
    });
  }
  try {
    const registered = await sdk.registerClient(at.issuer, {
      metadata: at.metadata,
      clientMetadata: {
        client_name: "Toolcrib",
        redirect_uris: [redirectUri],
        application_type: "native",
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
      },
      scope,
      fetchFn,
    });
    return {
      id: registered.client_id,
      secret: registered.client_secret,
      authMethod: registered.token_endpoint_auth_method,
      origin: "registered",
      redirectUri,
    };
  } catch (error) {
    throw oauthFailure(sdk, error, at.issuer);
  }
}

/** In the SDK's words, with the configured secret where there is one. */
export function clientInformation(
  client: GrantClient,
  configuredSecret: string | undefined,
): OAuthClientInformationMixed {
  const secret = client.origin === "configured" ? configuredSecret : client.secret;
  return {
    client_id: client.id,
    client_secret: secret,
    token_endpoint_auth_method: client.authMethod,
  };
}
