/** What happens in a run, for one reader: events are kept until they are taken. */
export class EventQueue<Event> implements AsyncIterable<Event> {
  readonly #events: Event[] = [];
  #ended = false;
  #wake = (): void => {};

  push(event: Event): void {
    if (this.#ended) return;
    this.#events.push(event);
    this.#wake();
  }

  /** The reader gets this one and what is before it; whatever comes later is dropped. */
  end(last: Event): void {
    this.push(last);
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    for (;;) {
      const event = this.#events.shift();
      if (event !== undefined) yield event;
      else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
