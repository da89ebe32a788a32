export type Listeners<Events extends object> = { readonly [Name in keyof Events]?: (event: Events[Name]) => void };

interface ListenerSet {
  readonly all: Set<(event: never) => void>;
  /** The same, made when an event comes: listeners may change while they are called, but hardly ever do. */
  list: readonly ((event: never) => void)[] | undefined;
}

/**
 * A typed emitter. Node's own is not used because it throws on an unhandled "error" event,
 * warns at eleven listeners, and lets one throwing listener silence the rest.
 */
export class Emitter<Events extends object> {
  readonly #listeners = new Map<keyof Events, ListenerSet>();

  /** The returned function removes the listener. */
  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): () => void {
    let listeners = this.#listeners.get(name);
    if (listeners === undefined) {
      listeners = { all: new Set(), list: undefined };
      this.#listeners.set(name, listeners);
    }
    listeners.all.add(listener);
    listeners.list = undefined;
    return () => {
      listeners.all.delete(listener);
      listeners.list = undefined;
    };
  }

  /** Several listeners at once; the returned function removes them all. */
  listen(listeners: Listeners<Events>): () => void {
    const stops: (() => void)[] = [];
    for (const name in listeners) {
      const listener = listeners[name];
      if (listener !== undefined) stops.push(this.on(name, listener));
    }
    return () => {
      for (const stop of stops) stop();
    };
  }

  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    const listeners = this.#listeners.get(name);
    if (listeners === undefined) return;
    listeners.list ??= [...listeners.all];
    for (const listener of listeners.list) {
      try {
        // The map is keyed by name, so a listener found under it takes that event.
        (listener as (event: Events[Name]) => void)(event);
      } catch (error) {
        // A listener's fault is its owner's, not the emitter's; it surfaces outside the call path.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  clear(): void {
    this.#listeners.clear();
  }
}
