// First: messages are in its language.
import "./shell/language.ts";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { lazy, StrictMode, Suspense, useState } from "react";
import { createRoot } from "react-dom/client";
import type { Me } from "../../src/contract/settings-schemas.ts";
import { Toasts } from "./components/toast.tsx";
import { createPageRouter } from "./routes.tsx";
import { Gate, reloadForLogin, takeLoginCode } from "./shell/gate.tsx";
import { takeAnswerToken } from "./shell/answer-token.ts";
import { startTheme } from "./shell/theme.ts";
import { queryClient } from "./state/queries.ts";
import { takeLoginCallback } from "./views/logins/callback.ts";

const AnswerLink = lazy(async () => ({ default: (await import("./shell/answer-link.tsx")).AnswerLink }));

function Views({ me }: { readonly me: Me }) {
  const [router] = useState(() => createPageRouter(me));
  return <RouterProvider router={router} context={{ me }} />;
}

const token = takeAnswerToken();
const code = takeLoginCode();
takeLoginCallback();
reloadForLogin();
startTheme();

const place = document.querySelector("#root");
if (place !== null)
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        {token === undefined ? (
          <Gate code={code}>{(me) => <Views me={me} />}</Gate>
        ) : (
          <Suspense>
            <AnswerLink token={token} />
          </Suspense>
        )}
        <Toasts />
      </QueryClientProvider>
    </StrictMode>,
  );
