import { describe, expect, it } from "vitest";
import { isCredential, isHarmless } from "../../../src/hub/install/environment.ts";

const SLACK = ["https://hooks.slack.com", "services/T0AA/B0BB/abcdefgh"].join("/");
const UUID = "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed";

describe("[trust-10b] a variable that nobody named", () => {
  it.each([
    ["DATABASE_URL", "postgres://app:pass@db/app"],
    ["DATABASE_URL", "postgres://db/app"],
    ["BACKEND_URL", "https://user:pass@example.com"],
    ["BACKEND_URL", "https://example.com/?access_token=abc"],
    ["BACKEND_URL", "https://example.com/#secret"],
    ["BACKEND_URL", `https://example.com/${UUID}`],
    ["BACKEND_URL", "https://example.com/a/b"],
    ["BACKEND_URL", "https://a1b2c3d4e5f6a7b8c9d0.example.com"],
    ["NOTIFY_URL", SLACK],
    ["ALERT_WEBHOOK_URL", "https://example.com"],
    ["NOTIFY_URL", "https://discord.com/api/webhooks/1/x"],
    ["NOTIFY_URL", "https://acme.webhook.office.com/webhookb2/a"],
    ["STRIPE_SK", "short"],
    ["MY_PW", "swordfish"],
    ["SEED", "correct horse battery staple"],
    ["LOG_LEVEL", "ghp_0123456789abcdefghijABCDEFGHIJ012345"],
    ["APP_MODE", "9f86d081884c7d659a2feaa0c55ad015"],
    ["APP_MODE", UUID],
    ["APP_PORT", "12345678901234567890"],
    ["SSH_AUTH_SOCK", "/tmp/ssh-XXXX/agent.1"],
    ["GPG_AGENT_INFO", "/run/user/1000/gnupg/S.gpg-agent"],
    ["DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus"],
    ["XDG_RUNTIME_DIR", "/run/user/1000"],
    ["DOCKER_HOST", "tcp://10.0.0.1:2376"],
    ["KUBECONFIG", "/home/u/.kube/config"],
    ["GOOGLE_APPLICATION_CREDENTIALS", "/home/u/key.json"],
    ["AWS_PROFILE", "work"],
    ["CONFIG_FILE", "/home/u/.aws/config"],
    ["CONFIG_FILE", "/srv/app/service-credentials.json"],
    ["CONFIG_FILE", "/srv/app/server.pem"],
    ["DATA_DIR", "/run/user/1000"],
    ["DATA_DIR", "/home/u/.password-store"],
    ["PASSWORD_STORE_DIR", "/srv/store"],
    ["API_KEY", "x"],
    ["DATA_DIR", `/${"a/".repeat(300)}`],
    ["DATA_DIR", "swordfish"],
  ])("is not handed over: %s=%s", (name, value) => {
    expect(isHarmless(name, value)).toBe(false);
  });

  it.each([
    ["DATA_DIR", "/srv/notes"],
    ["notesRoot", "~/notes/agent sessions"],
    ["GIVEN_ROOT", "/tmp/toolcrib-skills-Ab12xZ"],
    ["PROJECT_PATH", "C:\\work\\notes"],
    ["WEATHER_CITY", "Bern"],
    ["LOG_LEVEL", "debug"],
    ["APP_TIMEZONE", "Europe/Berlin"],
    ["APP_LOCALE", "en_US.UTF-8"],
    ["SEARCH_URL", "http://localhost:8080"],
    ["SEARCH_URL", "https://search.example.com/api/v1"],
    ["SEARCH_HOST", "search.example.com:443"],
    ["APP_PORT", "8080"],
    ["APP_TIMEOUT", "30s"],
    ["APP_DEBUG", "true"],
  ])("is handed over where it is known to be harmless: %s=%s", (name, value) => {
    expect(isHarmless(name, value)).toBe(true);
  });

  it("is kept as a secret where its address is one, also when it was named", () => {
    expect(isCredential("NOTIFY_URL", SLACK)).toBe(true);
    expect(isCredential("NOTIFY_URL", "https://example.com/?token=abc")).toBe(true);
    expect(isCredential("SEARCH_URL", "https://search.example.com/api/v1")).toBe(false);
  });
});
