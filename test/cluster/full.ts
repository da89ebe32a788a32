/** `npm run test:cluster` runs everything; plain `npm test` the part that fits beside the rest. */
export const isFull = process.env["CLUSTER_TESTS"] === "full";
