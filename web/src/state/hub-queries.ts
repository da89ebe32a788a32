import { type InvalidateQueryFilters, QueryClient } from "@tanstack/react-query";

/** Where a query waits for its first answer, React Query takes that answer for a new one: it is asked again after it. */
export class HubQueries extends QueryClient {
  override async invalidateQueries(filters: InvalidateQueryFilters = {}): Promise<void> {
    const asked = this.getQueryCache().findAll({ ...filters, fetchStatus: "fetching" });
    const first = asked.filter(({ state }) => state.data === undefined);
    const again = first.map(async (query) => {
      await query.promise?.catch(() => {});
      await super.invalidateQueries({ queryKey: query.queryKey, exact: true });
    });
    await Promise.all([super.invalidateQueries(filters), ...again]);
  }
}
