import type { Handlers } from "../operation.ts";

export const auditHandlers: Handlers<"listAudit" | "verifyAudit"> = {
  listAudit: (input, _context, { hub }) => hub.audit.query(input),
  verifyAudit: (_input, _context, { hub }) => hub.audit.verify(),
};
