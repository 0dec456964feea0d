import type { Problem } from '../explain.ts'
import { isMap } from '../is-map.ts'
import { show } from '../show.ts'

/** The sections of a document in which a value may come from an environment variable. */
const parts: readonly string[] = ['store', 'remote']

/**
 * Returns a document with the value of the variable in place of each `env:NAME` under `store` and `remote`, so that no password
 * need be in a file; and a problem for each variable that is not set.
 */
export function readEnvironment(
  document: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): { readonly document: Readonly<Record<string, unknown>>; readonly problems: readonly Problem[] } {
  const problems: Problem[] = []
  const read = (value: unknown, path: readonly PropertyKey[]): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => read(item, [...path, index]))
    if (isMap(value)) {
      return Object.fromEntries(Object.entries(value).map(([word, one]) => [word, read(one, [...path, word])]))
    }
    if (typeof value !== 'string' || !value.startsWith('env:')) return value
    const name = value.slice(4).trim()
    const found = environment[name]
    if (found !== undefined && found !== '') return found
    const what = `is in the environment variable ${show(name)}, which is not set: set it, or write the value here`
    problems.push({ path, atName: false, what })
    return value
  }
  const resolved = Object.entries(document).map(([word, value]) => [
    word,
    parts.includes(word) ? read(value, [word]) : value,
  ])
  return { document: Object.fromEntries(resolved), problems }
}
