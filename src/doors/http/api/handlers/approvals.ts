import { ToolcribError } from "../../../../model/errors.ts";
import type { Handlers } from "../operation.ts";

export const approvalHandlers: Handlers<"listApprovals" | "getApproval" | "answerApproval"> = {
  listApprovals: (input, _context, { hub }) => hub.activity.approvals(input),

  async getApproval({ approvalId }, _context, { hub }) {
    const approval = await hub.activity.approval(approvalId);
    if (approval !== undefined) return { approval };
    throw new ToolcribError("not_found", `No call was asked about under the id ${approvalId}.`);
  },

  answerApproval: ({ approvalId, answer }, { caller, session }, { hub }) =>
    hub.activity.answer(approvalId, answer, caller.user ?? null, session.door),
};
