import type { IncomingHttpHeaders } from 'node:http'
import type { RouteConditions } from '../../settings/routes/match-settings.ts'

/** What conditions are held against. */
export interface ConditionedCall {
  readonly method: string
  readonly headers: IncomingHttpHeaders
}

/** The method and the headers that a route asks for. */
export class Conditions {
  /** How many there are: of routes with the same host and path, the one with the most comes first. */
  readonly count: number
  readonly #methods: readonly string[]
  readonly #headers: readonly [name: string, values: readonly string[]][]

  constructor({ method, header }: RouteConditions) {
    this.#methods = method
    this.#headers = Object.entries(header)
    this.count = this.#headers.length + (method.length > 0 ? 1 : 0)
  }

  areMetBy({ method, headers }: ConditionedCall): boolean {
    if (this.count === 0) return true
    if (this.#methods.length > 0 && !this.#methods.includes(method)) {
      if (method !== 'HEAD' || !this.#methods.includes('GET')) return false
    }
    return this.#headers.every(([name, values]) => hasValue(headers[name], values))
  }
}

/** A header that comes several times is joined by commas, so each item is a value, too, as it is for rules. */
function hasValue(received: string | readonly string[] | undefined, wanted: readonly string[]): boolean {
  if (received === undefined) return false
  const lines = typeof received === 'string' ? [received] : received
  return lines.some(line => wanted.some(pattern => fits(line, pattern) || lineHas(line, pattern)))
}

function lineHas(line: string, pattern: string): boolean {
  return line.includes(',') && line.split(',').some(item => fits(item.trim(), pattern))
}

function fits(value: string, pattern: string): boolean {
  return pattern.endsWith('*') ? value.startsWith(pattern.slice(0, -1)) : value === pattern
}
