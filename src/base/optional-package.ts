import { systemErrorCode } from "../model/errors.ts";

/** An optional package, or undefined if it is not installed; any other failure to load it is thrown. */
export async function loadOptional<Module>(name: string, load: () => Promise<Module>): Promise<Module | undefined> {
  try {
    return await load();
  } catch (error) {
    const isNotFound = /^(?:ERR_)?MODULE_NOT_FOUND$/.test(systemErrorCode(error) ?? "");
    // A package that is there and lacks one of its own parts is broken, not missing.
    if (isNotFound && String(error).includes(`'${name}'`)) return undefined;
    throw error;
  }
}
