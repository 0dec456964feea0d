import type { Call } from '../../call.ts'
import { hostName, looseHostName } from '../../http/host-name.ts'

/** The call as one server may read it. */
export interface Reading {
  readonly path: string
  readonly method: string
  readonly host: string
}

/** One call as the indexes read it, and the rules found so far. A compiled match has one and uses it for every call. */
export class Search {
  /** The number of this search: a condition that remembers it was visited by this search before. */
  round = 0
  #count = 0
  #call: Call | undefined
  #method: string | undefined
  #host: string | undefined
  #otherMethods: readonly string[] | undefined
  #authority: string | undefined
  readonly #positions: Int32Array
  readonly #foundIn: Float64Array

  constructor(rules: number) {
    this.#positions = new Int32Array(rules)
    this.#foundIn = new Float64Array(rules)
  }

  /** Fields that no rule uses are not read: filters compute some of them only on demand. With a reading, no other one is searched. */
  begin(call: Call, reading?: Reading): void {
    this.round++
    this.#count = 0
    this.#call = call
    this.#method = reading?.method
    this.#host = reading?.host
    this.#otherMethods = reading && NONE
    this.#authority = reading && ''
  }

  get method(): string {
    this.#method ??= this.#call?.method.toUpperCase() ?? ''
    return this.#method
  }

  /** Methods that a middleware behind the filter, or a service behind the gateway, may take instead; most calls name none. */
  get otherMethods(): readonly string[] {
    this.#otherMethods ??= this.#call === undefined ? [] : overridesOf(this.#call)
    return this.#otherMethods
  }

  /** Empty when the call names none. */
  get host(): string {
    this.#host ??= readHost(this.#call?.host ?? '')
    return this.#host
  }

  /** The host that HTTP/2 names beside a Host header; frameworks differ in which of the two they take. */
  get authority(): string {
    this.#authority ??= this.#call === undefined ? '' : otherHostOf(this.#call)
    return this.#authority
  }

  get headers(): Call['headers'] {
    return this.#call?.headers
  }

  get attributes(): Call['attributes'] {
    return this.#call?.attributes
  }

  /** Adds a rule once, though several of its paths may match. */
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

/** The headers by which frameworks let a POST be another method, and the field of a form or a query. */
const OVERRIDING = ['x-http-method-override', 'x-http-method', 'x-method-override'] as const
const OVERRIDING_FIELD = '_method'
const NONE: readonly string[] = []

export function overridesOf({ headers, query }: Call): readonly string[] {
  let found = NONE
  for (const name of OVERRIDING) {
    const value = headers?.[name]
    if (value !== undefined) found = [...found, ...methodsIn(`${value}`)]
  }
  if (query?.includes('method')) {
    for (const [name, value] of new URLSearchParams(query)) {
      if (name.toLowerCase() === OVERRIDING_FIELD) found = [...found, ...methodsIn(value)]
    }
  }
  return found
}

/** Reads methods; more than one of them means that a service may take any. */
function methodsIn(text: string): string[] {
  return text
    .slice(0, MOST_OVERRIDE)
    .toUpperCase()
    .split(/[\s,]+/)
    .filter(Boolean)
}

const MOST_OVERRIDE = 256

export function otherHostOf({ headers, host }: Call): string {
  const authority = headers?.[':authority']
  return typeof authority === 'string' && authority !== host ? readHost(authority) : ''
}

export function readHost(text: string): string {
  return hostName(text) ?? looseHostName(text)
}
