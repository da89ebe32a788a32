/** The source id of in-process tools. */
export const LOCAL_SOURCE = "local";
