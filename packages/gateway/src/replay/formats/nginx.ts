import * as known from './fields.ts'
import type { LineReader } from './format.ts'
import { templateReader } from './template.ts'

const variables: Readonly<Record<string, known.Field>> = {
  ...{ remote_addr: known.peer, remote_user: known.user, time_local: known.clfTime, time_iso8601: known.isoTime },
  ...{ msec: known.secondsMs, request: known.request, request_method: known.method, request_uri: known.target },
  ...{ uri: known.target, document_uri: known.target, args: known.query, query_string: known.query },
  ...{ status: known.status, host: known.host, http_host: known.host, server_name: known.host },
  ...{ request_time: known.duration(1e6), proxy_add_x_forwarded_for: known.skip },
}

/** A question mark, if there is a query. */
const isArgs: known.Field = { write: () => true }

function fieldOf(variable: string): known.Field {
  const field = variables[variable]
  if (field !== undefined) return field
  if (variable === 'is_args') return isArgs
  if (variable.startsWith('http_')) return known.header(variable.slice(5).replaceAll('_', '-'))
  if (variable.startsWith('cookie_')) return known.cookie(variable.slice(7))
  return known.skip
}

/**
 * Returns a reader for nginx's `log_format`: `$remote_addr - $remote_user [$time_local] "$request" …`; throws if it cannot be read
 * back.
 */
export function nginxReader(format: string): LineReader {
  const parts: (string | known.Field)[] = []
  let at = 0
  for (const match of format.matchAll(/\$(?:\{(\w+)\}|(\w+))/g)) {
    parts.push(format.slice(at, match.index))
    parts.push(fieldOf(match[1] ?? match[2]!))
    at = match.index + match[0].length
  }
  parts.push(format.slice(at))
  return templateReader({ format: 'nginx', parts: tidy(parts), time: 'end' })
}

/** Removes empty texts; a path with a query right behind it becomes one target. */
export function tidy(parts: readonly (string | known.Field)[]): (string | known.Field)[] {
  const all: (string | known.Field)[] = []
  for (const part of parts) {
    const isPartOfTarget = all.at(-1) === known.target && (part === known.query || part === isArgs)
    if (part !== '' && !isPartOfTarget) all.push(part)
  }
  return all
}
