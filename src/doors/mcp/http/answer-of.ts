import { asToolcribError } from "../../../model/errors.ts";
import type { RequestId } from "../../../model/rpc.ts";
import { encodeToolcribError } from "../encode.ts";
import type { Encoded } from "../encoded.ts";

/** The engine answers everything; what it throws all the same is its fault and nobody else's. */
export async function answerOf(id: RequestId, ask: () => Promise<Encoded | null>): Promise<Encoded | null> {
  try {
    return await ask();
  } catch (error) {
    return encodeToolcribError(id, asToolcribError(error).toObject());
  }
}
