/** Packages that are installed only by those who use them. */

/** The module, or undefined where the package is not installed; any other fault of loading it is thrown. */
export async function loadOptional<Module>(name: string, load: () => Promise<Module>): Promise<Module | undefined> {
  try {
    return await load();
  } catch (error) {
    if (isMissing(error, name)) return undefined;
    throw error;
  }
}

/** A package that is there and lacks one of its own parts is broken, not missing. */
function isMissing(error: unknown, name: string): boolean {
  if (!(error instanceof Error) || !("code" in error)) return false;
  return (
    (error.code === "ERR_MODULE_NOT_FOUND" || error.code === "MODULE_NOT_FOUND") && error.message.includes(`'${name}'`)
  );
}
