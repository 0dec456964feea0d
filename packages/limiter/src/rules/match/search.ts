import type { Call } from '../../call.ts'
import { hostName, looseHostName } from '../../http/host-name.ts'

/** One call as the indexes read it, and the rules found so far. A compiled match has one and uses it for every call. */
export class Search {
  /** The number of this search: a condition that remembers it was visited by this search before. */
  round = 0
  #count = 0
  #call: Call | undefined
  #method: string | undefined
  #host: string | undefined
  readonly #positions: Int32Array
  readonly #foundIn: Float64Array

  constructor(rules: number) {
    this.#positions = new Int32Array(rules)
    this.#foundIn = new Float64Array(rules)
  }

  /** Fields that no rule uses are not read: filters compute some of them only on demand. */
  begin(call: Call): void {
    this.round++
    this.#count = 0
    this.#call = call
    this.#method = undefined
    this.#host = undefined
  }

  get method(): string {
    this.#method ??= this.#call?.method.toUpperCase() ?? ''
    return this.#method
  }

  /** Empty when the call names none. */
  get host(): string {
    this.#host ??= readHost(this.#call?.host ?? '')
    return this.#host
  }

  /** The host that HTTP/2 names beside a Host header; frameworks differ in which of the two they take. */
  get authority(): string {
    const authority = this.headers?.[':authority']
    return typeof authority === 'string' && authority !== this.#call?.host ? readHost(authority) : ''
  }

  get headers(): Call['headers'] {
    return this.#call?.headers
  }

  get attributes(): Call['attributes'] {
    return this.#call?.attributes
  }

  /** Several paths of a rule may match at once; the rule is found once. */
  add(position: number): void {
    if (this.#foundIn[position] === this.round) return
    this.#foundIn[position] = this.round
    this.#positions[this.#count++] = position
  }

  /** Returns the rules found in the order of the document. */
  end<R>(rules: readonly R[], found: R[]): number {
    this.#call = undefined
    this.#sort()
    for (let at = 0; at < this.#count; at++) found[at] = rules[this.#positions[at]!]!
    return this.#count
  }

  #sort(): void {
    const positions = this.#positions
    if (this.#count > 32) {
      positions.subarray(0, this.#count).sort()
      return
    }
    for (let at = 1; at < this.#count; at++) {
      const position = positions[at]!
      let to = at
      for (; to > 0 && positions[to - 1]! > position; to--) positions[to] = positions[to - 1]!
      positions[to] = position
    }
  }
}

function readHost(text: string): string {
  return hostName(text) ?? looseHostName(text)
}
