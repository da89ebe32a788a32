import { ToolcribError } from "../../../../model/errors.ts";
import type { Handlers } from "../operation.ts";
import { scopeMissing } from "../scope-missing.ts";

export const approvalHandlers: Handlers<"listApprovals" | "getApproval" | "answerApproval"> = {
  listApprovals: (input, _context, { hub }) => hub.activity.approvals(input),

  async getApproval({ approvalId }, _context, { hub }) {
    const approval = await hub.activity.approval(approvalId);
    if (approval !== undefined) return { approval };
    throw new ToolcribError("not_found", `No call was asked about under the id ${approvalId}.`);
  },

  answerApproval({ approvalId, answer }, { caller, session }, { hub }) {
    const isOperator = caller.scopes.has("admin");
    // It changes the rules, for everybody.
    if (answer === "always" && !isOperator) throw scopeMissing("admin");
    return hub.activity.answer(
      approvalId,
      answer,
      caller.user ?? null,
      session.door,
      // An operator may do everything else as well: a person who tries a tool on the page answers there too.
      isOperator ? undefined : caller.key,
    );
  },
};
