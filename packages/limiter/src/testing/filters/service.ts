/**
 * The service behind a filter under test, in no framework's terms. A server serves it so:
 *
 *     GET  /hello       hello()
 *     GET  /slow        await slow()
 *     GET  /users/:id   the id
 *     GET  /stream      the pieces of stream(), sent as they come
 *     GET  /broken      throws what broken() throws
 *     POST /echo        the body that came
 *     GET  /login       login(), behind the filter of a route with the rule `login`, if there is such a filter
 */
export class FilterService {
  /** The calls that reached a handler, in order. */
  readonly served: string[] = []
  /** The calls that wait in /slow, with the function that ends each. */
  readonly slowly: (() => void)[] = []
  /** The number of chunks of /stream that may be sent, and the call that waits for the next. */
  #pieces = 0
  #more: () => void = () => {}

  hello(): string {
    this.served.push('hello')
    return 'hello'
  }

  login(): string {
    this.served.push('login')
    return 'welcome'
  }

  async slow(): Promise<string> {
    this.served.push('slow')
    await new Promise<void>(resolve => this.slowly.push(resolve))
    return 'slow'
  }

  user(id: string): string {
    this.served.push(`user ${id}`)
    return id
  }

  broken(): never {
    this.served.push('broken')
    throw new Error('the service is broken, as this test wants it')
  }

  /** Three pieces of 64 KiB; the second and the third wait until `letGo`. */
  async *stream(): AsyncGenerator<string> {
    this.served.push('stream')
    for (let piece = 0; piece < 3; piece++) {
      if (piece > this.#pieces) await new Promise<void>(resolve => (this.#more = resolve))
      yield `${piece}`.repeat(65_536)
    }
  }

  letGo(): void {
    this.#pieces = 2
    this.#more()
  }
}
