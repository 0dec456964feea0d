import type { LogFormat } from './format.ts'
import { headersOf, jsonFormat, momentOf, textAt } from './json.ts'

const fields = new Set([
  'ip',
  'path',
  'method',
  'host',
  'status',
  'duration',
  'header:user-agent',
  'header:referer',
  'verdict',
])

/** The gateway's access log. Its address is already that of the caller, chosen among proxies. */
export const dianaFormat: LogFormat = jsonFormat({
  ...{ format: 'diana', tickUs: 1000, time: 'start', fields },
  is: object => typeof object.time === 'string' && 'end' in object && 'bytesIn' in object,
  readObject(object, entry) {
    entry.at = momentOf(object.time)
    entry.peer = textAt(object, 'address')
    entry.method = textAt(object, 'method') ?? ''
    entry.target = textAt(object, 'path') ?? ''
    entry.host = textAt(object, 'host')
    entry.status = Number(object.status) || undefined
    entry.durationUs = Math.round(Number(object.ms) * 1000)
    entry.headers = agentOf(textAt(object, 'userAgent'), textAt(object, 'referer'))
    entry.verdict = object.verdict === 'passed' || object.verdict === 'refused' ? object.verdict : undefined
    entry.rule = textAt(object, 'rule')
    return entry.at >= 0 && entry.method !== ''
  },
})

/** The format with `replay:`: when rules decided, in which turn, and what they read of the call. */
export const dianaExactFormat: LogFormat = jsonFormat({
  ...{ format: 'diana with replay', tickUs: 1, time: 'start' },
  fields: new Set([...fields, 'headers', 'attributes']),
  is: object => typeof object.us === 'number' || (typeof object.time === 'string' && 'bytesIn' in object),
  readObject(object, entry) {
    // the gateway answered it before any rule was asked
    if (typeof object.us !== 'number') return undefined
    entry.at = object.us
    entry.turn = Number(object.turn) || 0
    entry.endTurn = typeof object.endTurn === 'number' ? object.endTurn : undefined
    entry.peer = textAt(object, 'address')
    entry.method = textAt(object, 'method') ?? ''
    entry.target = textAt(object, 'path') ?? ''
    entry.host = textAt(object, 'host')
    entry.status = Number(object.status) || undefined
    entry.durationUs = typeof object.endUs === 'number' ? object.endUs - object.us : Number.NaN
    entry.waitUs = Number(object.waitUs) || 0
    entry.left = object.left === true
    entry.outcome = typeof object.outcome === 'number' ? object.outcome : undefined
    entry.own = object.own === true
    entry.headers = { ...agentOf(textAt(object, 'userAgent'), textAt(object, 'referer')), ...headersOf(object.headers) }
    entry.attributes = headersWithCase(object.keys)
    entry.verdict = object.verdict === 'passed' || object.verdict === 'refused' ? object.verdict : undefined
    entry.rule = textAt(object, 'rule')
    return entry.method !== ''
  },
})

function agentOf(agent: string | undefined, referer: string | undefined): Record<string, string> {
  return { ...(agent !== undefined && { 'user-agent': agent }), ...(referer !== undefined && { referer }) }
}

function headersWithCase(value: unknown): Record<string, string> | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const values: Record<string, string> = {}
  for (const [name, text] of Object.entries(value)) if (typeof text === 'string') values[name] = text
  return values
}
