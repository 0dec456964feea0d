import type { Call } from '../call.ts'
import { describePart, type KeyReader } from '../dimensions/key.ts'
import type { CompiledRule } from '../rules/compile.ts'

/** A call as the rules saw it: no header, cookie or query that no rule reads. */
export interface RecordedCall {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly call: Call
  readonly cost: number
  /** One caller in this number was recorded at that time. */
  readonly oneOf: number
}

const busyPerSecond = 2000
const longestText = 512

/**
 * The last calls, to decide them again by other rules. When calls come fast, only some callers are recorded, with all of their calls, so
 * that the behavior of each stays whole.
 */
export class CallRecorder {
  readonly #most: number
  readonly #now: () => number
  readonly #calls: RecordedCall[] = []
  #next = 0
  #second = 0
  #thisSecond = 0
  #oneOf = 1
  #readers: readonly (readonly [name: string, read: KeyReader])[] = []
  #headers: readonly string[] = []
  #attributes: readonly string[] = []

  constructor(options: { readonly most?: number; readonly now: () => number }) {
    this.#most = options.most ?? 20_000
    this.#now = options.now
  }

  /** Records from now on what these rules read. */
  use(rules: readonly Pick<CompiledRule, 'keyParts' | 'match'>[]): void {
    // a recorded call has these fields anyway; other values are read when the call is recorded
    const parts = rules.flatMap(({ keyParts }) => keyParts).filter(([, , field]) => field === undefined)
    this.#readers = [...new Map(parts.map(([name, read]) => [name, read]))]
    this.#headers = [...new Set(rules.flatMap(({ match }) => Object.keys(match.header ?? {})))]
    this.#attributes = [...new Set(rules.flatMap(({ match }) => Object.keys(match.attribute ?? {})))]
  }

  add(call: Call, cost: number): void {
    const at = this.#now()
    this.#pace(at)
    if (this.#oneOf > 1 && hashText(call.ip ?? '') % this.#oneOf !== 0) return
    this.#calls[this.#next] = { at, call: this.#copy(call), cost, oneOf: this.#oneOf }
    this.#next = (this.#next + 1) % this.#most
  }

  /** Returns the calls since a moment, oldest first, all of them at the same sampling. */
  since(from: number): RecordedCall[] {
    const inOrder = [...this.#calls.slice(this.#next), ...this.#calls.slice(0, this.#next)]
    const recent = inOrder.filter(({ at }) => at >= from)
    const oneOf = recent.reduce((most, one) => Math.max(most, one.oneOf), 1)
    return recent.filter(({ call }) => hashText(call.ip ?? '') % oneOf === 0).map(one => ({ ...one, oneOf }))
  }

  #pace(at: number): void {
    const second = Math.floor(at / 1000)
    if (second !== this.#second) {
      const busy = second === this.#second + 1 ? this.#thisSecond / busyPerSecond : 0
      this.#oneOf = 2 ** Math.max(0, Math.ceil(Math.log2(busy)))
      this.#second = second
      this.#thisSecond = 0
    }
    this.#thisSecond++
  }

  #copy(call: Call): Call {
    const attributes: Record<string, string> = {}
    for (const name of this.#attributes) {
      const value = call.attributes?.[name]
      if (typeof value === 'string') attributes[name] = cut(value)
    }
    for (const [name, read] of this.#readers) {
      const { countedBy, value } = describePart(read(call))
      if (countedBy === 'value' || countedBy === 'digest') attributes[name] = value
    }
    const headers: Record<string, string | readonly string[] | undefined> = {}
    for (const name of this.#headers) headers[name] = call.headers?.[name]
    const { method, ip, host } = call
    const path = cut(call.path)
    return {
      method: cut(method),
      path,
      ip,
      host: host && cut(host),
      resource: cut(call.resource ?? path),
      headers,
      attributes,
    }
  }
}

/** Copies a text, since a piece of a long text keeps all of it in memory. */
function cut(text: string): string {
  return text.length > longestText ? Buffer.from(text.slice(0, longestText), 'utf16le').toString('utf16le') : text
}

/** Computes FNV-1a. */
function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash ^ (hash >>> 15)) >>> 0
}
