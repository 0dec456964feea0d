import { headerFault, listOf, methodFault, textOf, z } from 'diana-limiter/schema'

/** The conditions that a call must meet besides its host and path for a route to take it. */
export interface RouteConditions {
  /** In upper case; none is every method. */
  readonly method: readonly string[]
  /** Names in lower case, each with its values: exact, the beginning of one and `*`, or `*` alone for any value. */
  readonly header: Readonly<Record<string, readonly string[]>>
}

const method = textOf(methodFault, 20).transform(name => name.toUpperCase())
const name = textOf(headerFault, 128).transform(text => text.toLowerCase())

/** The methods that a route takes. */
export const methodsSchema: z.Schema<string[]> = listOf(method, { min: 1, max: 50 })
  .default([])
  .describe('Methods, of which GET includes HEAD; left out, every method.')

/** The headers that the calls of a route have. */
export const headersSchema: z.Schema<Record<string, string[]>> = z
  .record(name, listOf(z.string().min(1).max(1024), { min: 1, max: 100 }))
  .default({})
  .describe('Headers by name, each with the values that fit: v2, v2* for a beginning, * for any value.')

/** Returns one text for all conditions that take the same calls. */
export function conditionsKey({ method, header }: RouteConditions): string {
  const headers = Object.entries(header).map(([name, values]) => [name, [...new Set(values)].sort()] as const)
  return JSON.stringify([[...new Set(method)].sort(), headers.sort(([one], [other]) => (one < other ? -1 : 1))])
}

/** Returns what is wrong with a plain path. */
export function pathFault(path: string): string | undefined {
  if (!path.startsWith('/')) return `must begin with /: write "/${path}"`
  if (/[^\x21-\x7e]|[?#*;\\]|\/\/|\/\.\.?(?:\/|$)/.test(path))
    return 'must be a plain path such as /api, without patterns, queries or dots'
  return undefined
}
