import { describeKey } from 'diana-limiter'
import type { CallerUsage } from 'diana-limiter/admin'

/** A request that a caller could have sent, as Explain reads it; undefined if a value of the key cannot be written there. */
export function requestOf(
  { key, by }: Pick<CallerUsage, 'key' | 'by'>,
  { method, path }: { readonly method: string; readonly path: string },
  identify: Readonly<Record<string, readonly string[]>>,
): string | undefined {
  const headers: string[] = []
  const query: string[] = []
  for (const [name, { countedBy, value }] of Object.entries(describeKey(key, by))) {
    if (countedBy === 'absence' || countedBy === 'address' || fromAddress.has(name)) continue
    const source = (Object.hasOwn(identify, name) ? identify[name] : [name])?.find(one =>
      /^(header|query|cookie):/.test(one),
    )
    const [, kind, field] = /^(\w+):(.+)$/.exec(source ?? '') ?? []
    // a line break would begin another header
    if (field === undefined || /[\r\n]/.test(value)) return undefined
    if (kind === 'query') query.push(`${encodeURIComponent(field)}=${encodeURIComponent(value)}`)
    else headers.push(kind === 'header' ? `${field}: ${value}` : `cookie: ${field}=${value}`)
  }
  const target = query.length === 0 ? path : `${path}?${query.join('&')}`
  return [`${method} ${target}`, ...headers].join('\n')
}

/** What the path, the method or the connection already says. */
const fromAddress = new Set(['ip', 'path', 'method', 'resource', 'host'])
