import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import type { Me } from "../../src/contract/settings-schemas.ts";
import { Toasts } from "./components/toast.tsx";
import { createPageRouter } from "./routes.tsx";
import { Gate, reloadForLogin, takeLoginCode } from "./shell/gate.tsx";
import { startLanguage } from "./shell/language.ts";
import { startTheme } from "./shell/theme.ts";
import { queryClient } from "./state/queries.ts";
import { takeLoginCallback } from "./views/logins/callback.ts";

function Views({ me }: { readonly me: Me }) {
  const [router] = useState(() => createPageRouter(me));
  return <RouterProvider router={router} context={{ me }} />;
}

const code = takeLoginCode();
takeLoginCallback();
reloadForLogin();
startTheme();
startLanguage();

const place = document.querySelector("#root");
if (place !== null)
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <Gate code={code}>{(me) => <Views me={me} />}</Gate>
        <Toasts />
      </QueryClientProvider>
    </StrictMode>,
  );
