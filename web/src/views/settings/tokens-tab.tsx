import type { ConfigView } from "../../../../src/contract/settings-schemas.ts";
import { Badge } from "../../components/badge.tsx";
import { Empty } from "../../components/states.tsx";

export function TokensTab({ tokens }: { readonly tokens: ConfigView["tokens"] }) {
  if (tokens.length === 0)
    return (
      <Empty title="No tokens" icon="lock">
        Everyone on the hub's machine can read and call, and no one else. Tokens are set under{" "}
        <code className="font-mono">http.auth.tokens</code> in the config, each as a reference such as{" "}
        <code className="font-mono break-all">secret://env/ADA_TOKEN</code>.
      </Empty>
    );
  return (
    <div className="flex flex-col gap-3 p-4">
      <div>
        <h2 className="font-semibold">Tokens of the config</h2>
        <p className="text-soft">Who has access, and to what. The value of a token is never shown.</p>
      </div>
      <div tabIndex={0} role="group" aria-label="Tokens" className="overflow-x-auto rounded-md border border-line">
        <table className="w-full text-left">
          <thead>
            <tr className="border-b border-line text-sm text-faint">
              <th scope="col" className="px-3 py-1.5 font-medium">
                User
              </th>
              <th scope="col" className="px-3 py-1.5 font-medium">
                Role
              </th>
              <th scope="col" className="px-3 py-1.5 font-medium">
                May
              </th>
            </tr>
          </thead>
          <tbody className="divide-y divide-line">
            {tokens.map((token, index) => (
              <tr key={index}>
                <td className="px-3 py-1.5 break-all">{token.user ?? <span className="text-faint">no user</span>}</td>
                <td className="px-3 py-1.5 break-all">{token.role ?? <span className="text-faint">any</span>}</td>
                <td className="px-3 py-1.5">
                  <span className="flex flex-wrap gap-1">
                    {token.scopes.map((scope) => (
                      <Badge key={scope} tone={scope === "admin" ? "warn" : "neutral"}>
                        {scope}
                      </Badge>
                    ))}
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}
