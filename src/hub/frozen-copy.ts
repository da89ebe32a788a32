/** A deep copy that cannot be changed, for code that may look but must not touch. Functions and the like are shared. */
export function frozenCopy<T>(value: T): T {
  if (Array.isArray(value)) {
    // A copy of an array has the array's own type.
    return Object.freeze(value.map((item) => frozenCopy<unknown>(item))) as T;
  }
  if (typeof value !== "object" || value === null) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  // As above: the same keys with copies of the same values.
  return Object.freeze(
    Object.fromEntries(Object.entries(value).map(([key, item]) => [key, frozenCopy<unknown>(item)])),
  ) as T;
}
