/** The package's version; a test keeps it equal to package.json, which a bundled build cannot read. */
export const VERSION = "0.2.0";
