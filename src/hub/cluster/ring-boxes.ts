/** How keys lie in the store: as they are, or sealed with `secrets.key`, which must then be the same on all nodes. */
import { ToolcribError } from "../../model/errors.ts";
import { isJsonObject } from "../../model/json.ts";
import type { SealedText } from "../../secrets/sealed/sealed-secrets.ts";

/** Base64, or sealed base64. */
export type Box = string | SealedText;

export interface RingBoxes {
  close(bytes: Buffer): Promise<Box>;
  /** Rejects with `invalid_config`. */
  open(box: Box): Promise<Buffer>;
}

interface Sealing {
  seal(name: string, text: string): Promise<SealedText>;
  unseal(name: string, entry: SealedText): Promise<string>;
}

export const plainBoxes: RingBoxes = {
  close: async (bytes) => bytes.toString("base64"),
  async open(box) {
    if (typeof box === "string") return Buffer.from(box, "base64");
    throw otherKey("were sealed with `secrets.key`, which this node does not have");
  },
};

export function sealedBoxes(name: string, sealing: Sealing): RingBoxes {
  return {
    close: (bytes) => sealing.seal(name, bytes.toString("base64")),
    async open(box) {
      // From before `secrets.key` was set; the next key is sealed.
      if (typeof box === "string") return Buffer.from(box, "base64");
      try {
        return Buffer.from(await sealing.unseal(name, box), "base64");
      } catch (cause) {
        throw otherKey("were sealed with another `secrets.key` than this node has", cause);
      }
    },
  };
}

export function isBox(value: unknown): value is Box {
  if (typeof value === "string") return true;
  return isJsonObject(value) && ["nonce", "ciphertext", "tag", "keyId"].every((key) => typeof value[key] === "string");
}

function otherKey(how: string, cause?: unknown): ToolcribError {
  return new ToolcribError("invalid_config", `The session keys of the cluster ${how}.`, {
    hint: "Set the same `secrets.key` on all nodes.",
    cause,
  });
}
