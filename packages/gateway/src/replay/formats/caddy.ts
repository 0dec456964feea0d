import type { LogFormat } from './format.ts'
import { headersOf, jsonFormat, momentOf, textAt, valueAt } from './json.ts'

/** Caddy's access log. Its moment is that at which the request ended, and it takes no more than microseconds to write it. */
export const caddyFormat: LogFormat = jsonFormat({
  ...{ format: 'caddy', tickUs: 1000, time: 'end' },
  fields: new Set(['ip', 'path', 'method', 'host', 'user', 'status', 'duration', 'headers']),
  is: object => typeof valueAt(object, 'request.uri') === 'string' && valueAt(object, 'ts') !== undefined,
  readObject(object, entry) {
    entry.at = momentOf(object.ts)
    entry.peer = textAt(object, 'request.remote_ip') ?? textAt(object, 'request.remote_addr')?.replace(/:\d+$/, '')
    entry.method = textAt(object, 'request.method') ?? ''
    entry.target = textAt(object, 'request.uri') ?? ''
    entry.host = textAt(object, 'request.host')
    entry.user = textAt(object, 'user_id')
    entry.headers = headersOf(valueAt(object, 'request.headers'))
    entry.status = Number(object.status) || undefined
    entry.durationUs = Math.round(Number(object.duration) * 1e6)
    return entry.at >= 0 && entry.method !== '' && entry.target !== ''
  },
})
