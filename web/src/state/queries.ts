/** Operations of the hub as React queries. A key is `[operation, input]`, so that events can say what is out of date. */
import {
  keepPreviousData,
  QueryCache,
  type QueryClient,
  useInfiniteQuery,
  useMutation,
  type UseMutationResult,
  useQuery,
  type UseQueryResult,
} from "@tanstack/react-query";
import type { InputOf, OperationName, OutputOf } from "../../../src/contract/operations.ts";
import { run } from "../api.ts";
import { failureOf } from "../failure.ts";
import { HubQueries } from "./hub-queries.ts";

const FINAL_CODES = new Set(["unauthorized", "denied", "not_found", "invalid_arguments", "conflict"]);

export const queryClient: QueryClient = new HubQueries({
  queryCache: new QueryCache({
    onError: (error, { queryKey }) => {
      // The login is over: asking who we are leads back to it.
      if (failureOf(error).code === "unauthorized" && queryKey[0] !== "me")
        void queryClient.invalidateQueries({ queryKey: ["me"] });
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (count, error) => count < 2 && !FINAL_CODES.has(failureOf(error).code),
    },
  },
});

interface OperationOptions {
  /** False: not asked yet. */
  readonly enabled?: boolean;
  /** The answer to the question before stays until the new one is there. */
  readonly keep?: boolean;
  readonly refetchInterval?: number;
}

/** An answer that stays fresh through the hub's events. */
export function useOperation<Name extends OperationName>(
  name: Name,
  input: InputOf<Name>,
  options: OperationOptions = {},
): UseQueryResult<OutputOf<Name>> {
  return useQuery({
    queryKey: [name, input],
    queryFn: ({ signal }) => run(name, input, { signal }),
    enabled: options.enabled,
    ...(options.keep === true ? { placeholderData: keepPreviousData } : {}),
    ...(options.refetchInterval === undefined ? {} : { refetchInterval: options.refetchInterval }),
  });
}

type PagedName = {
  [Name in OperationName]: OutputOf<Name> extends { nextCursor?: string | undefined } ? Name : never;
}[OperationName];

/** A long list, page by page: `pages` has what is known, `fetchNextPage` asks for more. */
export function usePages<Name extends PagedName>(name: Name, input: InputOf<Name>, options: OperationOptions = {}) {
  return useInfiniteQuery({
    queryKey: [name, input],
    queryFn: ({ signal, pageParam }) =>
      run(name, { ...input, ...(pageParam === undefined ? {} : { cursor: pageParam }) }, { signal }),
    initialPageParam: undefined as string | undefined,
    // PagedName holds only operations whose output may have it.
    getNextPageParam: (last) => (last as { nextCursor?: string }).nextCursor,
    enabled: options.enabled,
    ...(options.keep === true ? { placeholderData: keepPreviousData } : {}),
  });
}

interface Paged {
  readonly hasNextPage: boolean;
  readonly isFetching: boolean;
  readonly isFetchNextPageError: boolean;
  fetchNextPage(): Promise<unknown>;
}

/**
 * Asks for the next page; undefined while that makes no sense. An event that makes the list out of date gives up a page that
 * is on its way: whoever stands at the end asks again once this is there again.
 */
export function nextPageOf(query: Paged): (() => void) | undefined {
  if (!query.hasNextPage || query.isFetching || query.isFetchNextPageError) return undefined;
  return () => void query.fetchNextPage();
}

/** A write. What it makes out of date comes back as an event, and at once through `outdates`. */
export function useChange<Name extends OperationName>(
  name: Name,
  options: {
    readonly outdates?: readonly OperationName[];
    readonly onSuccess?: (output: OutputOf<Name>, input: InputOf<Name>) => void;
  } = {},
): UseMutationResult<OutputOf<Name>, Error, InputOf<Name>> {
  return useMutation({
    mutationFn: (input: InputOf<Name>) => run(name, input),
    onSuccess: (output, input) => {
      for (const each of options.outdates ?? []) void queryClient.invalidateQueries({ queryKey: [each] });
      options.onSuccess?.(output, input);
    },
  });
}
