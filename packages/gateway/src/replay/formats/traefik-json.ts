import type { LogFormat } from './format.ts'
import { jsonFormat, momentOf, textAt } from './json.ts'

/** Traefik's access log in JSON; headers that it keeps are there as `request_Name`. */
export const traefikJsonFormat: LogFormat = jsonFormat({
  ...{ format: 'traefik json', tickUs: 1, time: 'start' },
  fields: new Set(['ip', 'path', 'method', 'host', 'user', 'status', 'duration', 'headers']),
  is: object => typeof object.RequestPath === 'string',
  readObject(object, entry) {
    entry.at = momentOf(object.StartUTC ?? object.StartLocal ?? object.time)
    entry.peer = textAt(object, 'ClientHost')
    entry.method = textAt(object, 'RequestMethod') ?? ''
    entry.target = textAt(object, 'RequestPath') ?? ''
    entry.host = textAt(object, 'RequestHost')
    entry.user = textAt(object, 'ClientUsername')
    entry.status = Number(object.DownstreamStatus) || undefined
    entry.durationUs = Math.round(Number(object.Duration) / 1000)
    for (const name of Object.keys(object)) {
      if (!name.startsWith('request_')) continue
      entry.headers ??= {}
      entry.headers[name.slice(8).toLowerCase()] = textAt(object, name) ?? ''
    }
    return entry.at >= 0 && entry.method !== '' && entry.target !== ''
  },
})
